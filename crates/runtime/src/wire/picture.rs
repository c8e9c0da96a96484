//! Pictures on their way to a model: their bytes are looked up where they are kept, and written in
//! the letters every wire carries them in.

use std::fmt::Debug;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use locum_kernel::Picture;

/// Where the bytes of pictures are kept, under the handles the journal knows them by.
pub trait Album: Debug + Send + Sync {
    /// `None` if it is not there any more.
    fn bytes(&self, handle: &str) -> Option<Vec<u8>>;
}

/// Nobody keeps any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Empty;

impl Album for Empty {
    fn bytes(&self, _handle: &str) -> Option<Vec<u8>> {
        None
    }
}

/// One picture, ready to be written into a request.
#[derive(Debug)]
pub(crate) struct Shown<'p> {
    pub(crate) media_type: &'p str,
    pub(crate) letters: String,
}

impl Shown<'_> {
    pub(crate) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.letters)
    }
}

/// What can be shown of these. The others are told of in words, so that nobody takes them for seen.
pub(crate) fn show<'p>(
    album: &dyn Album,
    pictures: &'p [Picture],
) -> (Vec<Shown<'p>>, Option<String>) {
    let mut gone = 0;
    let mut shown = Vec::new();
    for picture in pictures {
        match album.bytes(&picture.handle) {
            Some(bytes) => {
                let (media_type, letters) = (&*picture.media_type, STANDARD.encode(bytes));
                shown.push(Shown { media_type, letters });
            }
            None => gone += 1,
        }
    }
    (shown, (gone > 0).then(|| format!("[{gone} pictures are not kept any more]")))
}
