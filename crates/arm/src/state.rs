// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serialisation of state, for snapshots.
//!
//! Only state is saved. The values that the constructor sets are not saved, so [`State::restore`] needs an object that
//! was constructed with equal arguments. [`state!`](crate::state!) lists every field of a type, saved or not. A new
//! field therefore does not compile until its author has decided whether to save it.

use std::collections::VecDeque;

/// A type whose state can be saved and restored.
pub trait State {
    /// Appends the state to `to`.
    fn save(&self, to: &mut Vec<u8>);

    /// Restores the state that [`State::save`] wrote. After an error the object is unusable.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a state of this type.
    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged>;
}

/// The bytes are not a state of this object. The text says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub &'static str);

/// Saved bytes that are not yet read.
pub struct Saved<'a>(&'a [u8]);

impl<'a> Saved<'a> {
    /// Starts to read `bytes`.
    pub fn new(bytes: &'a [u8]) -> Saved<'a> {
        Saved(bytes)
    }

    /// Returns the next `count` bytes.
    ///
    /// # Errors
    ///
    /// Fails if fewer bytes are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, left) = self.0.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.0 = left;
        Ok(taken)
    }

    /// Returns the next value of a type that is saved by value.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a value of this type.
    pub fn value<T: State + Default>(&mut self) -> Result<T, Damaged> {
        let mut value = T::default();
        value.restore(self)?;
        Ok(value)
    }

    /// Returns the next length. Each element of the sequence takes at least one byte.
    fn length(&mut self) -> Result<usize, Damaged> {
        let length = self.value::<usize>()?;
        if length > self.0.len() {
            return Err(TOO_SHORT);
        }
        Ok(length)
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Fails if bytes are left.
    pub fn end(self) -> Result<(), Damaged> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Damaged("it is too long"))
        }
    }
}

const TOO_SHORT: Damaged = Damaged("it is too short");

/// Implements [`State`].
///
/// - `state!(Type: saved, fields; others)` is for a struct.
/// - `state!(enum Type: Variants)` is for an enumeration whose variants have no fields.
/// - `state!(Type<B: Bound>: fields; others => method)` also calls a method after the restore. The method checks the
///   saved fields or rebuilds the others.
#[macro_export]
macro_rules! state {
    (enum $type:ident: $($variant:ident),*) => {
        impl $crate::State for $type {
            fn save(&self, to: &mut Vec<u8>) {
                let mut number = 0;
                for variant in [$($type::$variant),*] {
                    if core::mem::discriminant(self) == core::mem::discriminant(&variant) {
                        break;
                    }
                    number += 1;
                }
                match self {
                    $($type::$variant => to.push(number),)*
                }
            }

            fn restore(&mut self, from: &mut $crate::Saved<'_>) -> Result<(), $crate::Damaged> {
                let number = usize::from(from.value::<u8>()?);
                let variants = [$($type::$variant),*];
                let found = variants.into_iter().nth(number);
                *self = found.ok_or($crate::Damaged("a number stands for nothing"))?;
                Ok(())
            }
        }
    };
    (
        $type:ident $(<$param:ident: $bound:path>)?:
        $($saved:ident),* $(; $($made:ident),* $(=> $found:ident)?)?
    ) => {
        impl $(<$param: $bound + $crate::State>)? $crate::State for $type $(<$param>)? {
            #[allow(unused_variables)]
            fn save(&self, to: &mut Vec<u8>) {
                let $type { $($saved,)* $($($made: _,)*)? } = self;
                $($crate::State::save($saved, to);)*
            }

            #[allow(unused_variables)]
            fn restore(&mut self, from: &mut $crate::Saved<'_>) -> Result<(), $crate::Damaged> {
                let $type { $($saved,)* $($($made: _,)*)? } = self;
                $($crate::State::restore($saved, from)?;)*
                $($(self.$found()?;)?)?
                Ok(())
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl State for $type {
            fn save(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
                let bytes = from.take(size_of::<$type>())?;
                *self = $type::from_le_bytes(bytes.try_into().map_err(|_| TOO_SHORT)?);
                Ok(())
            }
        }
    )*};
}

integers!(u8 u16 u32 u64);

impl State for usize {
    fn save(&self, to: &mut Vec<u8>) {
        (*self as u64).save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        *self = usize::try_from(from.value::<u64>()?).map_err(|_| TOO_SHORT)?;
        Ok(())
    }
}

impl State for bool {
    fn save(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        *self = match from.value::<u8>()? {
            0 => false,
            1 => true,
            _ => return Err(Damaged("a number stands for nothing")),
        };
        Ok(())
    }
}

/// A slice is saved without its length.
impl<T: State> State for [T] {
    fn save(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.save(to));
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.iter_mut().try_for_each(|value| value.restore(from))
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn save(&self, to: &mut Vec<u8>) {
        self.as_slice().save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.as_mut_slice().restore(from)
    }
}

impl<T: State + ?Sized> State for Box<T> {
    fn save(&self, to: &mut Vec<u8>) {
        self.as_ref().save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.as_mut().restore(from)
    }
}

impl<T: State + Default> State for Vec<T> {
    fn save(&self, to: &mut Vec<u8>) {
        self.len().save(to);
        self.as_slice().save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        let length = from.length()?;
        self.resize_with(length, T::default);
        self.as_mut_slice().restore(from)
    }
}

impl<T: State + Default> State for VecDeque<T> {
    fn save(&self, to: &mut Vec<u8>) {
        self.len().save(to);
        self.iter().for_each(|value| value.save(to));
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        let length = from.length()?;
        self.resize_with(length, T::default);
        self.make_contiguous().restore(from)
    }
}

impl<T: State + Default> State for Option<T> {
    fn save(&self, to: &mut Vec<u8>) {
        self.is_some().save(to);
        if let Some(value) = self {
            value.save(to);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        *self = match from.value::<bool>()? {
            true => Some(from.value()?),
            false => None,
        };
        Ok(())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.save(to);
        self.1.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.0.restore(from)?;
        self.1.restore(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    enum Colour {
        #[default]
        Red,
        Green,
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Thing {
        colour: Colour,
        queue: VecDeque<u16>,
        pair: Option<(u32, bool)>,
        lines: [u8; 3],
        clock: u64,
    }

    crate::state!(enum Colour: Red, Green);
    crate::state!(Thing: colour, queue, pair, lines; clock);

    fn thing() -> (Thing, Vec<u8>) {
        let mut thing = Thing {
            colour: Colour::Green,
            queue: [7, 8].into(),
            pair: Some((1 << 30, true)),
            lines: [1, 2, 3],
            clock: 9,
        };
        thing.queue.rotate_left(1);
        let mut bytes = Vec::new();
        thing.save(&mut bytes);
        (thing, bytes)
    }

    #[test]
    fn what_is_saved_comes_back_and_what_is_not_stays() {
        let (saved, bytes) = thing();
        let mut other = Thing {
            queue: [5; 20].into(),
            clock: 1,
            ..Thing::default()
        };
        let mut from = Saved::new(&bytes);
        other.restore(&mut from).unwrap();
        assert_eq!(from.end(), Ok(()));
        assert_eq!(other, Thing { clock: 1, ..saved });
        let mut again = Vec::new();
        other.save(&mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn bytes_that_are_too_few_too_many_or_nothing_are_refused() {
        let (_, bytes) = thing();
        for length in 0..bytes.len() {
            let mut from = Saved::new(&bytes[..length]);
            assert_eq!(Thing::default().restore(&mut from), Err(TOO_SHORT));
        }
        let longer = [&bytes[..], &[0]].concat();
        let mut from = Saved::new(&longer);
        Thing::default().restore(&mut from).unwrap();
        assert!(from.end().is_err());
        let nothing = [&[2], &bytes[1..]].concat();
        let refused = Thing::default().restore(&mut Saved::new(&nothing));
        assert_eq!(refused, Err(Damaged("a number stands for nothing")));
        assert!(false.restore(&mut Saved::new(&[2])).is_err());
    }
}
