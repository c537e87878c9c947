// SPDX-License-Identifier: MIT OR Apache-2.0
//! CP15 operations, by their numbers.

use serde::Deserialize;

/// `opc1,CRn,CRm,opc2` of an MCR or MRC of CP15, as in `0,c7,c10,4`. `*` stands for any CRm. For example, `0,c8,*,1`
/// invalidates a TLB entry, because every CRm selects the TLB of a core with one TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Cp15 {
    opc1: u32,
    crn: u32,
    /// `None` for any.
    crm: Option<u32>,
    opc2: u32,
}

impl TryFrom<String> for Cp15 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bad = || format!("\"{text}\" is not opc1,CRn,CRm,opc2, as in \"0,c7,c10,4\"");
        let number = |part: &str, prefix: &str, limit: u32| {
            let digits = part.strip_prefix(prefix);
            let number = digits.and_then(|d| d.parse().ok());
            number.filter(|n| *n < limit).ok_or_else(bad)
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let [opc1, crn, crm, opc2] = parts[..] else {
            return Err(bad());
        };
        Ok(Cp15 {
            opc1: number(opc1, "", 8)?,
            crn: number(crn, "c", 16)?,
            crm: match crm {
                "*" => None,
                crm => Some(number(crm, "c", 16)?),
            },
            opc2: number(opc2, "", 8)?,
        })
    }
}

impl std::fmt::Display for Cp15 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},c{},", self.opc1, self.crn)?;
        match self.crm {
            Some(crm) => write!(f, "c{crm},{}", self.opc2),
            None => write!(f, "*,{}", self.opc2),
        }
    }
}

impl Cp15 {
    /// Returns the operation of an MCR or MRC. Returns `None` for another instruction.
    pub fn of(word: u32) -> Option<Cp15> {
        (word & 0x0f00_0f10 == 0x0e00_0f10).then_some(Cp15 {
            opc1: word >> 21 & 7,
            crn: word >> 16 & 15,
            crm: Some(word & 15),
            opc2: word >> 5 & 7,
        })
    }

    /// Returns whether the operation is on caches, the write buffer or TLBs.
    pub fn is_maintenance(self) -> bool {
        matches!(self.crn, 7 | 8)
    }

    /// Returns whether an instruction is an MCR or MRC with this operation.
    pub fn matches(self, word: u32) -> bool {
        Cp15::of(word).is_some_and(|op| self.covers(op))
    }

    /// Returns whether `op` is this operation. If this operation's CRm is `*`, any CRm matches.
    pub fn covers(self, op: Cp15) -> bool {
        self == Cp15 {
            crm: self.crm.and(op.crm),
            ..op
        }
    }
}
