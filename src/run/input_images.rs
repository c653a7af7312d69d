//! The images of a prompt: reads the files of `--image` and `/image`, checks them, and stores them in the session.

use crate::error::{AppError, AppResult};
use agent_config::text_file::read_bytes;
use agent_core::failure::FailureKind;
use agent_core::image::{
    Image, ImageError, ImageStore, MAX_IMAGE_BYTES, MAX_REQUEST_IMAGE_BYTES, MAX_REQUEST_IMAGES,
};
use agent_core::limits::FallbackChain;
use agent_journal::images::ImageDir;
use agent_llm::LlmClient;
use agent_messages as messages;
use agent_terminal::one_line;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Characters of a path in an error.
const PATH_CHARS: usize = 200;

/// Checked images with their contents.
#[derive(Clone, Default)]
pub struct InputImages(Vec<(Image, Rc<[u8]>)>);

impl InputImages {
    /// Reads the images in `files`.
    ///
    /// # Errors
    /// Fails for a file that is missing, unreadable, no image or above a limit, and for too many files.
    pub fn read(files: &[PathBuf]) -> AppResult<Self> {
        Self::checked(files.iter().map(|file| read_image(file)))
    }

    /// Checks images that a client sent, which have names and bytes.
    ///
    /// # Errors
    /// Fails for one that is no image or above a limit, and for too many.
    pub fn from_client(images: impl ExactSizeIterator<Item = (String, Vec<u8>)>) -> AppResult<Self> {
        Self::checked(images.map(|(name, bytes)| check_image(&name, &name, bytes, None)))
    }

    fn checked(images: impl ExactSizeIterator<Item = AppResult<(Image, Rc<[u8]>)>>) -> AppResult<Self> {
        if images.len() > MAX_REQUEST_IMAGES {
            return Err(unusable(messages::too_many_images(images.len(), MAX_REQUEST_IMAGES)));
        }
        let images = images.collect::<AppResult<Vec<_>>>()?;
        let total = images.iter().fold(0, |sum: u64, (image, _)| sum.saturating_add(image.bytes));
        if total > MAX_REQUEST_IMAGE_BYTES {
            return Err(unusable(messages::images_too_large(total, MAX_REQUEST_IMAGE_BYTES)));
        }
        Ok(Self(images))
    }

    /// Checks that the selected model accepts images, if there are any. Returns a warning if a fallback accepts none.
    ///
    /// # Errors
    /// Fails if the selected model accepts none.
    pub fn check_models(&self, models: &FallbackChain<Rc<dyn LlmClient>>) -> AppResult<Option<String>> {
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

    /// Stores the images durably in a session, and returns them.
    ///
    /// # Errors
    /// Fails if one cannot be written.
    pub fn store_in(&mut self, store: &ImageDir) -> AppResult<Vec<Image>> {
        let stored = self.0.drain(..).map(|(image, bytes)| {
            store.store(&image, &bytes).map(|()| image).map_err(|source| AppError {
                kind: FailureKind::Session,
                cause: anyhow::Error::from(source).context("cannot store an image in the session"),
            })
        });
        stored.collect()
    }

    /// Returns the images.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.0.iter().map(|(image, _)| image)
    }
}

fn read_image(file: &Path) -> AppResult<(Image, Rc<[u8]>)> {
    let shown = file.display().to_string();
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    // One byte more than the limit, so that the check reports a larger file.
    let (bytes, length) = read_bytes(file, MAX_IMAGE_BYTES.saturating_add(1))
        .map_err(|error| wrong(&shown, &error.to_string()))?
        .ok_or_else(|| wrong(&shown, "it does not exist"))?;
    check_image(&name, &shown, bytes, Some(length))
}

/// Checks an image. `shown` names it in errors; `length` is its whole length if `bytes` are not all of it.
fn check_image(name: &str, shown: &str, bytes: Vec<u8>, length: Option<u64>) -> AppResult<(Image, Rc<[u8]>)> {
    let image = Image::check(name, &bytes).map_err(|error| match error {
        ImageError::TooLarge(found) => {
            wrong(shown, &ImageError::TooLarge(length.unwrap_or(found)).to_string())
        }
        error => wrong(shown, &error.to_string()),
    })?;
    Ok((image, bytes.into()))
}

fn wrong(shown: &str, why: &str) -> AppError {
    unusable(messages::image_unusable(&one_line(shown, PATH_CHARS), why))
}

fn unusable(message: String) -> AppError {
    AppError::new(FailureKind::Usage, message)
}
