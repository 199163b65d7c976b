//! A TOML text, where it came from, and errors with their place in it.

use crate::built_in::{Form, stem};
use kontig_error::{AskedWrongly, Error};
use kontig_profiles::Complaint;
use std::path::{Path, PathBuf};

/// A text with where it came from.
#[derive(Debug)]
pub struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) form: Form,
    /// Whether the program has it compiled in.
    pub(crate) built_in: bool,
    /// Whether it may say what its base says: the trial of a number may.
    pub(crate) may_repeat: bool,
}

impl Source {
    pub(crate) fn read(path: &str, form: Form) -> Result<Source, Error> {
        let text = kontig_profiles::read_text(path)?;
        Ok(Source { path: kontig_profiles::said(path).into(), text, form, built_in: false, may_repeat: false })
    }

    /// The built-in file of this name.
    pub(crate) fn built_in(form: Form, name: &str) -> Option<Source> {
        let (path, text) = form.files().iter().find(|(path, _)| stem(path) == name)?;
        Some(Source { path: (*path).into(), text: (*text).into(), form, built_in: true, may_repeat: false })
    }

    /// The file as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A path written in it, which starts from its own folder.
    pub(crate) fn beside(&self, path: &str) -> String {
        let folder = Path::new(&self.path).parent().unwrap_or(Path::new(""));
        folder.join(path).components().collect::<PathBuf>().to_string_lossy().into_owned()
    }

    pub(crate) fn malformed(&self, at: usize, reason: impl Into<String>) -> Error {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        AskedWrongly::Malformed { path: self.path.clone(), line, reason: reason.into() }.into()
    }

    /// Turns a reader's error into one line with the place in the file.
    pub(crate) fn unreadable_as_asked(&self, e: &toml::de::Error) -> Error {
        let Complaint { at, reason, .. } = Complaint::of(&self.text, e);
        self.malformed(at, reason)
    }

    /// Refuses a whole number that TOML does not have.
    pub(crate) fn check_numbers(&self) -> Result<(), Error> {
        Complaint::of_beyond(&self.text).map_or(Ok(()), |wrong| Err(self.malformed(wrong.at, wrong.reason)))
    }

    /// Something wrong with what it names at this place. Another file that is wrong says so itself.
    pub(crate) fn wrong_name_at(&self, at: usize, error: Error) -> Error {
        match error {
            Error::Asked(AskedWrongly::Malformed { .. } | AskedWrongly::Contradictory { .. }) => error,
            error => self.malformed(at, error.to_string()),
        }
    }
}
