//! What a rule says of itself: its name, what it does, since which kernel, and where that is written down.
//!
//! The doc comment of a rule is also what `kontig profile show` prints: the macros here turn a mechanism's struct, or
//! an enumeration of algorithms, into the type and its description at once. Whatever is said of a rule stands there
//! and nowhere else.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// One rule of one mechanism.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The mechanism's name: the table of a profile file it is in.
    pub mechanism: &'static str,
    /// Its name: the key in that table.
    pub name: &'static str,
    /// What it does; for a switch, where it is true.
    pub what: &'static str,
    /// The kernels it is true of, or a number is as large as today: from `6.3` on, or `5.16–6.2`. Empty where the values
    /// say so themselves.
    pub since: &'static str,
    /// Section of the behaviour document.
    pub section: &'static str,
    /// What values it takes.
    pub kind: Kind,
}

/// The values a rule takes.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Switch,
    /// A number.
    Number,
    /// One of some algorithms.
    OneOf(&'static [Variant]),
}

/// One of the algorithms a rule chooses from.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    ident: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The kernels that have it.
    pub since: &'static str,
}

impl Variant {
    pub(crate) const fn new(ident: &'static str, what: &'static str, since: &'static str) -> Variant {
        Variant { ident, what, since }
    }

    /// Its name in profile files: words joined by hyphens.
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

/// What a profile says to a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether it does what the rule says.
    Switch(bool),
    /// How many.
    Number(u32),
    /// Which algorithm.
    Variant(&'static Variant),
}

impl Setting {
    /// As profile files say it, without quotes.
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
    /// Its name: the table of a profile file.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its rules, in the order they are declared in.
    pub rules: &'static [Rule],
}

/// The rules of one mechanism, with their values.
pub(crate) trait Rules {
    const MECHANISM: Mechanism;
    fn settings(&self) -> Vec<Setting>;
}

/// A type a rule can be of.
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

/// The words of a doc comment, of which only the first has its leading blank.
pub(crate) const fn words(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

/// The one string there is, or none.
pub(crate) const fn at_most_one(given: &[&'static str]) -> &'static str {
    match given {
        [one] => one,
        _ => "",
    }
}

/// Declares the rules of a mechanism: the struct, and what is said of each.
macro_rules! mechanism {
    (
        $(#[doc = $about:literal])+
        pub struct $Rules:ident for $name:literal {
            $(
                $(#[doc = $doc:literal])+
                #[rule($(since = $since:literal,)? section = $section:literal)]
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
                #[doc = concat!("\n\nKernel behaviour: §", $section, $(". Kernels: ", $since,)? ".")]
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
                    since: $crate::rules::rule::at_most_one(&[$($since)?]),
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

/// Declares the algorithms a rule chooses from: the enumeration, and what is said of each.
macro_rules! variants {
    (
        $(#[doc = $about:literal])+
        pub enum $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                #[since($since:literal)]
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
                #[doc = concat!("\n\nKernels: ", $since, ".")]
                $Variant,
            )+
        }

        impl $Name {
            const VARIANTS: &'static [$crate::rules::rule::Variant] = &[$(
                $crate::rules::rule::Variant::new(
                    stringify!($Variant),
                    $crate::rules::rule::words(concat!($($doc),+)),
                    $since,
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
