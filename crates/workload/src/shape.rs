//! The keys that a type reads from a table of a file, and the kind of value that each takes.
//!
//! A key stands once, in the struct that reads it. To list the keys, the struct is read from a
//! deserializer that has no file and notes what it is asked for.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The kind of value that a key takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    YesNo,
    /// A whole number from 0 to what its type holds.
    Whole {
        most: u64,
    },
    Number,
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    List,
    /// A table of its own.
    Table,
}

/// A key of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
}

/// The keys that a struct reads.
pub(crate) fn keys<T: DeserializeOwned>() -> Vec<Key> {
    let mut names: &'static [&'static str] = &[];
    // It always fails, since nothing is there to be read.
    let _ = T::deserialize(Names(&mut names));
    let shape = |name| {
        let mut shape = Shape::Table;
        let _ = T::deserialize(Only { name, shape: &mut shape });
        shape
    };
    names.iter().map(|name| Key { name, shape: shape(name) }).collect()
}

fn asked<T>() -> Result<T, Error> {
    Err(Error::custom("this was only asked"))
}

/// Notes the keys that a struct names.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        asked()
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        keys: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = keys;
        asked()
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A table of this key alone, whose value notes what it is read as.
struct Only<'a> {
    name: &'static str,
    shape: &'a mut Shape,
}

impl<'de> Deserializer<'de> for Only<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Only<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        seed.deserialize(self.name.into_deserializer()).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Value(self.shape))
    }
}

/// Notes what a value is read as.
struct Value<'a>(&'a mut Shape);

macro_rules! note {
    ($($deserialize:ident: $shape:expr;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            *self.0 = $shape;
            asked()
        })*
    };
}

const fn whole(most: u64) -> Shape {
    Shape::Whole { most }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Error;

    note! {
        deserialize_bool: Shape::YesNo;
        deserialize_u8: whole(u8::MAX as u64);
        deserialize_u16: whole(u16::MAX as u64);
        deserialize_u32: whole(u32::MAX as u64);
        deserialize_u64: whole(u64::MAX);
        deserialize_f32: Shape::Number;
        deserialize_f64: Shape::Number;
        deserialize_str: Shape::Text;
        deserialize_string: Shape::Text;
        deserialize_seq: Shape::List;
        deserialize_any: Shape::Table;
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Shape::OneOf(words);
        asked()
    }
    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragmenter::Fragment;
    use crate::usemem::Usemem;

    #[test]
    fn keys_are_those_of_the_struct_with_what_each_takes() {
        let keys = keys::<Fragment>();
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names, ["holes", "freed_per_section", "leave"]);
        let holes = Shape::OneOf(&["first", "last", "random", "spread"]);
        assert_eq!(keys.iter().map(|key| key.shape).collect::<Vec<_>>(), [holes, whole(u32::MAX.into()), Shape::Text]);
        let threads = super::keys::<Usemem>().into_iter().find(|key| key.name == "threads").expect("it has threads");
        assert_eq!(threads.shape, Shape::List);
    }
}
