//! A rule's description of itself: its name, what it does, and where that is written down.
//!
//! `kontig profile show` prints the doc comment of a rule: the macros here turn a mechanism's
//! struct, or an enumeration of algorithms, into both the type and its description. The profiles
//! alone say which kernel does what; a doc comment names a version only where no profile shows it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// One rule of one mechanism.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The mechanism's name, and the table of a profile file that has the rule.
    pub mechanism: &'static str,
    /// The key in that table.
    pub name: &'static str,
    /// In a sentence; for a switch, the behaviour when it is true.
    pub what: &'static str,
    /// Section of the behaviour document.
    pub section: &'static str,
    pub kind: Kind,
}

/// The values a rule takes.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Switch,
    Number,
    OneOf(&'static [Variant]),
}

/// One of the algorithms a rule chooses from.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    ident: &'static str,
    pub what: &'static str,
}

impl Variant {
    pub(crate) const fn new(ident: &'static str, what: &'static str) -> Variant {
        Variant { ident, what }
    }

    /// The name in profile files: words joined by hyphens.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for c in self.ident.chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(c.to_lowercase());
        }
        name
    }
}

/// A profile's value of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    Switch(bool),
    Number(u32),
    Variant(&'static Variant),
}

impl Setting {
    /// As profile files write it, without quotes.
    pub fn shown(&self) -> String {
        match self {
            Setting::Switch(on) => on.to_string(),
            Setting::Number(n) => n.to_string(),
            Setting::Variant(v) => v.name(),
        }
    }
}

/// A mechanism: its rules, without their values.
#[derive(Debug)]
pub struct Mechanism {
    /// The name, and the table of a profile file.
    pub name: &'static str,
    pub about: &'static str,
    /// In the order of their declaration.
    pub rules: &'static [Rule],
}

/// The rules of one mechanism, with their values.
pub(crate) trait Rules {
    const MECHANISM: Mechanism;
    fn settings(&self) -> Vec<Setting>;
}

/// The type of a rule.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    fn setting(self) -> Setting;
}

impl Value for bool {
    const KIND: Kind = Kind::Switch;
    fn setting(self) -> Setting {
        Setting::Switch(self)
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Number;
    fn setting(self) -> Setting {
        Setting::Number(self)
    }
}

/// The words of a doc comment without the blank that begins it.
pub(crate) const fn words(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

/// Declares the rules of a mechanism: the struct, and the description of each rule.
macro_rules! mechanism {
    (
        $(#[doc = $about:literal])+
        pub struct $Rules:ident for $name:literal {
            $(
                $(#[doc = $doc:literal])+
                #[rule(section = $section:literal)]
                pub $rule:ident: $Value:ty,
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
        pub struct $Rules {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nKernel behaviour: §", $section, ".")]
                pub $rule: $Value,
            )+
        }

        impl $crate::rules::rule::Rules for $Rules {
            const MECHANISM: $crate::rules::rule::Mechanism = $crate::rules::rule::Mechanism {
                name: $name,
                about: $crate::rules::rule::words(concat!($($about),+)),
                rules: &[$($crate::rules::rule::Rule {
                    mechanism: $name,
                    name: stringify!($rule),
                    what: $crate::rules::rule::words(concat!($($doc),+)),
                    section: $section,
                    kind: <$Value as $crate::rules::rule::Value>::KIND,
                }),+],
            };

            fn settings(&self) -> alloc::vec::Vec<$crate::rules::rule::Setting> {
                alloc::vec![$($crate::rules::rule::Value::setting(self.$rule)),+]
            }
        }
    };
}

/// Declares the algorithms a rule chooses from: the enumeration, and the description of each.
macro_rules! variants {
    (
        $(#[doc = $about:literal])+
        pub enum $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                $Variant:ident,
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
        pub enum $Name {
            $(
                $(#[doc = $doc])+
                $Variant,
            )+
        }

        impl $Name {
            const VARIANTS: &'static [$crate::rules::rule::Variant] = &[$(
                $crate::rules::rule::Variant::new(
                    stringify!($Variant),
                    $crate::rules::rule::words(concat!($($doc),+)),
                )
            ),+];
        }

        impl $crate::rules::rule::Value for $Name {
            const KIND: $crate::rules::rule::Kind = $crate::rules::rule::Kind::OneOf($Name::VARIANTS);
            fn setting(self) -> $crate::rules::rule::Setting {
                $crate::rules::rule::Setting::Variant(&$Name::VARIANTS[self as usize])
            }
        }
    };
}

pub(crate) use {mechanism, variants};
