//! The images of `--image` and `/image`: reads and checks the files, and stores them in the session.

use crate::cli::error::{CliError, CliResult};
use crate::config::text_file::read_bytes;
use crate::core::failure::FailureKind;
use crate::core::image::{
    Image, ImageError, ImageStore, MAX_IMAGE_BYTES, MAX_REQUEST_IMAGE_BYTES, MAX_REQUEST_IMAGES,
};
use crate::core::limits::FallbackChain;
use crate::journal::images::ImageDir;
use crate::llm::LlmClient;
use crate::messages;
use crate::terminal::one_line;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Characters of a path in an error.
const PATH_CHARS: usize = 200;

/// Checked images with their contents.
#[derive(Default)]
pub struct InputImages(Vec<(Image, Vec<u8>)>);

impl InputImages {
    /// Reads the images in `files`.
    ///
    /// # Errors
    /// Fails for a file that is missing, unreadable, no image or above a limit, and for too many files.
    pub fn read(files: &[PathBuf]) -> CliResult<Self> {
        if files.len() > MAX_REQUEST_IMAGES {
            return Err(unusable(messages::too_many_images(files.len(), MAX_REQUEST_IMAGES)));
        }
        let images = files.iter().map(|file| read_image(file)).collect::<CliResult<Vec<_>>>()?;
        Self(images).within_limits()
    }

    /// Adds images of a client.
    ///
    /// # Errors
    /// Fails for what is no image or above a limit, and for too many.
    pub fn with(mut self, contents: &[Vec<u8>]) -> CliResult<Self> {
        for (index, bytes) in contents.iter().enumerate() {
            let name = format!("image {}", index.saturating_add(1));
            let image = Image::check(&name, bytes)
                .map_err(|error| unusable(messages::image_unusable(&name, &error.to_string())))?;
            self.0.push((image, bytes.clone()));
        }
        self.within_limits()
    }

    fn within_limits(self) -> CliResult<Self> {
        if self.0.len() > MAX_REQUEST_IMAGES {
            return Err(unusable(messages::too_many_images(self.0.len(), MAX_REQUEST_IMAGES)));
        }
        let total = self.images().fold(0, |sum: u64, image| sum.saturating_add(image.bytes));
        if total > MAX_REQUEST_IMAGE_BYTES {
            return Err(unusable(messages::images_too_large(total, MAX_REQUEST_IMAGE_BYTES)));
        }
        Ok(self)
    }

    /// Checks that the selected model accepts images, if there are any. Returns a warning if a fallback accepts none.
    ///
    /// # Errors
    /// Fails if the selected model accepts none.
    pub fn check_models(&self, models: &FallbackChain<Rc<dyn LlmClient>>) -> CliResult<Option<String>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let name = |client: &Rc<dyn LlmClient>| one_line(client.model(), PATH_CHARS);
        if !models.first.accepts_images() {
            return Err(unusable(messages::model_without_images(&name(&models.first))));
        }
        let fallbacks = models.fallbacks.iter().filter(|client| !client.accepts_images());
        let names: Vec<String> = fallbacks.map(name).collect();
        Ok((!names.is_empty()).then(|| messages::fallbacks_without_images(&names)))
    }

    /// Stores the images durably in the directory `dir` of a session, and returns them.
    ///
    /// # Errors
    /// Fails if one cannot be written.
    pub fn store_in(&mut self, dir: PathBuf) -> CliResult<(ImageDir, Vec<Image>)> {
        let store = ImageDir::new(dir);
        let stored = self.0.drain(..).map(|(image, bytes)| {
            store.store(&image, &bytes).map(|()| image).map_err(|source| CliError {
                kind: FailureKind::Session,
                cause: anyhow::Error::from(source).context("cannot store an image in the session"),
            })
        });
        let images = stored.collect::<CliResult<_>>()?;
        Ok((store, images))
    }

    /// Returns the images.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.0.iter().map(|(image, _)| image)
    }
}

fn read_image(file: &Path) -> CliResult<(Image, Vec<u8>)> {
    let wrong = |why: &str| {
        unusable(messages::image_unusable(&one_line(&file.display().to_string(), PATH_CHARS), why))
    };
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    // One byte more than the limit, so that the check reports a larger file.
    let (bytes, length) = read_bytes(file, MAX_IMAGE_BYTES.saturating_add(1))
        .map_err(|error| wrong(&error.to_string()))?
        .ok_or_else(|| wrong("it does not exist"))?;
    let image = Image::check(&name, &bytes).map_err(|error| match error {
        ImageError::TooLarge(_) => wrong(&ImageError::TooLarge(length).to_string()),
        error => wrong(&error.to_string()),
    })?;
    Ok((image, bytes))
}

fn unusable(message: String) -> CliError {
    CliError::new(FailureKind::Usage, message)
}
