//! Texts about images, for the model and for users.

use super::numbers::bytes;
use agent_core::image::Image;
use agent_core::language::Language;

/// Describes an image: `image photo.png (PNG, 640x480, 12 KB)`.
pub fn image_label(image: &Image, language: Language) -> String {
    let Image { name, media_type, width, height, .. } = image;
    let size = bytes(usize::try_from(image.bytes).unwrap_or(usize::MAX));
    format!("{} {name} ({}, {width}x{height}, {size})", language.pick("image", "imagen"), media_type.name())
}

/// Returns `text` with the labels of `images` in front of it, for logs.
pub fn with_image_labels(text: &str, images: &[Image], language: Language) -> String {
    let labels = images.iter().map(|image| format!("[{}] ", image_label(image, language)));
    labels.chain([text.to_owned()]).collect()
}

/// Line for the model before an image of the user.
pub fn image_line(image: &Image) -> String {
    format!("[{}]\n", image_label(image, Language::En))
}

/// Line for the model in place of an image that left the conversation.
pub fn image_not_sent(image: &Image) -> String {
    format!("[{}, no longer sent]", image_label(image, Language::En))
}

/// Line for the model before an image of the result of a call of `tool`.
pub fn image_of_result(image: &Image, tool: &str) -> String {
    format!("[{} of the result of {tool}]", image_label(image, Language::En))
}

/// Line for a model that accepts no images, in place of one.
pub fn image_not_accepted(image: &Image) -> String {
    format!("[{}: not sent, because this model accepts no images]", image_label(image, Language::En))
}

/// Line for the model in place of an image whose stored content is missing or damaged.
pub fn image_missing(image: &Image) -> String {
    format!("[{}: its stored content is missing or damaged]", image_label(image, Language::En))
}

/// Result of reading an image.
pub fn image_read(image: &Image) -> String {
    format!("The {} is attached.", image_label(image, Language::En))
}

/// Error for the model: the file `name` is an image, but it cannot be sent, for the reason `why`.
pub fn image_unreadable(name: &str, why: &str) -> String {
    format!("Image {name} cannot be sent: {why}.")
}

/// Error: the image `name` of `--image` or `/image` is unusable.
pub fn image_unusable(name: &str, why: &str) -> String {
    format!("image {name}: {why}")
}

/// Error: the model does not accept images.
pub fn model_without_images(model: &str) -> String {
    format!(
        "`{model}` accepts no images according to the table of models: choose another model (`agent models` lists \
         those with vision), leave the images away, or set llm.images: true if the table is wrong"
    )
}

/// Warning at the start of a run: these fallback models accept no images.
pub fn fallbacks_without_images(models: &[String]) -> String {
    format!("a fallback model would not see the images, because it accepts none: {}", models.join(", "))
}

/// Error: more images than one message may have.
pub fn too_many_images(number: usize, most: usize) -> String {
    format!("{number} images are attached; a message can have {most}: leave some away")
}

/// Error: the images of a message have too many bytes together.
pub fn images_too_large(total: u64, most: u64) -> String {
    let size = |number: u64| bytes(usize::try_from(number).unwrap_or(usize::MAX));
    format!(
        "the images have {} together; those of a message can have {}: leave some away or scale them down",
        size(total),
        size(most)
    )
}
