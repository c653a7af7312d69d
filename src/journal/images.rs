//! Images of a session, beside its journal in files named after the hash of their content.

use crate::blobs::BlobStore;
use agent_core::image::{Image, ImageSource, ImageStore};
use std::io;
use std::path::PathBuf;

/// Name of the directory in that of a session.
pub const IMAGES_DIR: &str = "images";

/// The directory of one session's images.
#[derive(Debug, Clone)]
pub struct ImageDir(BlobStore);

impl ImageDir {
    /// Returns the images in `dir`, which is created with mode 0700 when the first one is stored.
    pub fn new(dir: PathBuf) -> Self {
        Self(BlobStore::new(dir, "image"))
    }
}

impl ImageSource for ImageDir {
    fn load(&self, image: &Image) -> io::Result<Vec<u8>> {
        self.0.get(&image.hash, image.bytes)
    }
}

impl ImageStore for ImageDir {
    fn store(&self, image: &Image, bytes: &[u8]) -> io::Result<()> {
        if self.load(image).is_ok() {
            return Ok(());
        }
        self.0.store(bytes).map(drop)
    }
}
