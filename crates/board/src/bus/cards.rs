// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory cards in the slots of the board's controllers.

use super::SystemBus;
use crate::device::card::{Card, CardError, Content};
use crate::spec::BoardSpec;

impl SystemBus {
    /// Puts a card into the board's first slot, or takes the card out (`None`). The controller's outputs follow.
    ///
    /// # Errors
    /// Fails when the board has no slot.
    pub fn insert_card(&mut self, now: u64, content: Option<&Content>) -> Result<(), CardError> {
        let mut slots = self.slots.iter_mut().enumerate();
        let found = slots.find_map(|(n, slot)| Some((n, slot.device.card_slot_mut()?)));
        let Some((index, slot)) = found else {
            let text = "this board has no slot for a memory card";
            return Err(CardError(text.to_owned()));
        };
        slot.insert(content);
        self.settle(now, index);
        Ok(())
    }

    /// Returns the card in the board's first slot.
    pub fn card(&self) -> Option<&Card> {
        let slot = self.slots.iter().find_map(|slot| slot.device.card_slot());
        slot.and_then(|slot| slot.card())
    }
}

impl BoardSpec {
    /// Returns whether the board has a slot for a memory card.
    pub fn has_card_slot(&self) -> bool {
        let bus = SystemBus::new(self);
        bus.is_ok_and(|bus| {
            bus.slots
                .iter()
                .any(|slot| slot.device.card_slot().is_some())
        })
    }
}
