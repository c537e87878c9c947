// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flattened device trees (Devicetree Specification 0.4, chapter 5): the whole tree is parsed, changed, and written
//! again.

/// A node: properties and children in the blob's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name with unit address; empty for the root.
    pub name: String,
    /// Properties: name and bytes.
    pub properties: Vec<(String, Vec<u8>)>,
    /// Child nodes.
    pub children: Vec<Node>,
}

/// A device tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Memory reservations: address and size.
    pub reservations: Vec<(u64, u64)>,
    /// The root node.
    pub root: Node,
}

const MAGIC: u32 = 0xd00d_feed;
const VERSION: u32 = 17;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROP: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;
const HEADER: usize = 40;
/// Largest depth of a tree. Deeper trees are refused.
const DEPTH: usize = 64;

struct Reader<'a> {
    structs: &'a [u8],
    strings: &'a [u8],
    at: usize,
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let b = bytes
        .get(at..at.saturating_add(4))
        .ok_or("it ends too early")?;
    Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

fn text(bytes: &[u8], at: usize) -> Result<String, String> {
    let rest = bytes
        .get(at..)
        .ok_or("a name lies beyond the end of the file")?;
    let end = rest
        .iter()
        .position(|&b| b == 0)
        .ok_or("a name has no end")?;
    String::from_utf8(rest[..end].to_vec()).map_err(|_| "a name is not valid UTF-8".to_owned())
}

impl Reader<'_> {
    fn token(&mut self) -> Result<u32, String> {
        loop {
            let token = word(self.structs, self.at)?;
            self.at += 4;
            if token != NOP {
                return Ok(token);
            }
        }
    }

    /// Reads the node whose BEGIN_NODE has just been read.
    fn node(&mut self, depth: usize) -> Result<Node, String> {
        if depth > DEPTH {
            return Err(format!("its nodes are nested more than {DEPTH} deep"));
        }
        let name = text(self.structs, self.at)?;
        self.at = (self.at + name.len() + 1).next_multiple_of(4);
        let mut node = Node {
            name,
            ..Node::default()
        };
        loop {
            match self.token()? {
                PROP => {
                    let len = word(self.structs, self.at)? as usize;
                    let name = text(self.strings, word(self.structs, self.at + 4)? as usize)?;
                    let start = self.at + 8;
                    let value = self.structs.get(start..start.saturating_add(len));
                    node.properties.push((
                        name,
                        value
                            .ok_or("a property ends beyond the end of the file")?
                            .to_vec(),
                    ));
                    self.at = (start + len).next_multiple_of(4);
                }
                BEGIN_NODE => node.children.push(self.node(depth + 1)?),
                END_NODE => return Ok(node),
                other => return Err(format!("it has the unknown token {other}")),
            }
        }
    }
}

impl Tree {
    /// Parses a blob.
    ///
    /// # Errors
    /// Says what is wrong with the blob.
    pub fn parse(blob: &[u8]) -> Result<Tree, String> {
        if word(blob, 0)? != MAGIC {
            return Err("it does not start with d00dfeed".to_owned());
        }
        let total = word(blob, 4)? as usize;
        let blob = blob
            .get(..total)
            .ok_or_else(|| format!("it is cut short: {} bytes of {total}", blob.len()))?;
        let last_compatible = word(blob, 24)?;
        if last_compatible > VERSION {
            return Err(format!(
                "its format is not compatible with version {VERSION}, only with {last_compatible} or later"
            ));
        }
        let mut reservations = Vec::new();
        let mut at = word(blob, 16)? as usize;
        loop {
            let half = |n: usize| word(blob, at.saturating_add(n)).map(u64::from);
            let pair = (half(0)? << 32 | half(4)?, half(8)? << 32 | half(12)?);
            if pair == (0, 0) {
                break;
            }
            reservations.push(pair);
            at += 16;
        }
        let structs = blob
            .get(word(blob, 8)? as usize..)
            .ok_or("its structure block lies beyond the end of the file")?;
        let strings = blob
            .get(word(blob, 12)? as usize..)
            .ok_or("its strings block lies beyond the end of the file")?;
        let mut reader = Reader {
            structs,
            strings,
            at: 0,
        };
        if reader.token()? != BEGIN_NODE {
            return Err("it has no root node".to_owned());
        }
        Ok(Tree {
            reservations,
            root: reader.node(0)?,
        })
    }

    /// Writes a blob of version 17.
    pub fn to_blob(&self) -> Vec<u8> {
        let mut strings: Vec<u8> = Vec::new();
        let mut structs: Vec<u8> = Vec::new();
        self.root.write(&mut structs, &mut strings);
        structs.extend(END.to_be_bytes());
        let mut reserved: Vec<u8> = Vec::new();
        for (base, size) in self.reservations.iter().chain(&[(0, 0)]) {
            reserved.extend(base.to_be_bytes());
            reserved.extend(size.to_be_bytes());
        }
        let structs_at = HEADER + reserved.len();
        let strings_at = structs_at + structs.len();
        let total = strings_at + strings.len();
        let header = [
            MAGIC as usize,
            total,
            structs_at,
            strings_at,
            HEADER,
            VERSION as usize,
            16,
            0,
            strings.len(),
            structs.len(),
        ];
        let mut blob: Vec<u8> = header
            .iter()
            .flat_map(|&n| (n as u32).to_be_bytes())
            .collect();
        blob.extend(reserved);
        blob.extend(structs);
        blob.extend(strings);
        blob
    }

    /// Returns the node at a path such as `/chosen`, if every part of the path exists.
    pub fn node(&mut self, path: &str) -> Option<&mut Node> {
        let mut parts = path.split('/').filter(|p| !p.is_empty());
        parts.try_fold(&mut self.root, |node, part| node.child(part))
    }
}

impl Node {
    fn write(&self, structs: &mut Vec<u8>, strings: &mut Vec<u8>) {
        let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4), 0);
        structs.extend(BEGIN_NODE.to_be_bytes());
        structs.extend(self.name.as_bytes());
        structs.push(0);
        pad(structs);
        for (name, value) in &self.properties {
            let mut wanted = name.clone().into_bytes();
            wanted.push(0);
            let found = strings.windows(wanted.len()).position(|w| w == wanted);
            let at = found.unwrap_or_else(|| {
                strings.extend(&wanted);
                strings.len() - wanted.len()
            });
            structs.extend(PROP.to_be_bytes());
            structs.extend((value.len() as u32).to_be_bytes());
            structs.extend((at as u32).to_be_bytes());
            structs.extend(value);
            pad(structs);
        }
        for child in &self.children {
            child.write(structs, strings);
        }
        structs.extend(END_NODE.to_be_bytes());
    }

    /// Returns the child with this name. `name` may omit the unit address.
    pub fn child(&mut self, name: &str) -> Option<&mut Node> {
        let fits = |n: &Node| n.name == name || n.name.split('@').next() == Some(name);
        self.children.iter_mut().find(|n| fits(n))
    }

    /// Returns the child with this name. Makes it if it does not exist.
    pub fn child_or_new(&mut self, name: &str) -> &mut Node {
        let fits = |n: &Node| n.name == name || n.name.split('@').next() == Some(name);
        let at = self.children.iter().position(fits).unwrap_or_else(|| {
            self.children.push(Node {
                name: name.to_owned(),
                ..Node::default()
            });
            self.children.len() - 1
        });
        &mut self.children[at]
    }

    /// Returns the first node that is `wanted`: this node, or one below it.
    pub fn find(&self, wanted: &dyn Fn(&Node) -> bool) -> Option<&Node> {
        if wanted(self) {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(wanted))
    }

    /// Returns the texts of a property that is a list of texts.
    pub fn texts(&self, property: &str) -> impl Iterator<Item = &str> {
        let bytes = self.get(property).unwrap_or_default();
        let texts = bytes
            .split(|byte| *byte == 0)
            .filter(|text| !text.is_empty());
        texts.filter_map(|text| std::str::from_utf8(text).ok())
    }

    /// Returns whether the node's `compatible` property contains the text.
    pub fn is(&self, compatible: &str) -> bool {
        self.texts("compatible").any(|text| text == compatible)
    }

    /// Returns the bytes of a property.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.properties
            .iter()
            .find(|p| p.0 == name)
            .map(|p| p.1.as_slice())
    }

    /// Returns the value of a one-cell property.
    pub fn get_u32(&self, name: &str) -> Option<u32> {
        self.get(name)
            .filter(|v| v.len() == 4)
            .and_then(|v| word(v, 0).ok())
    }

    /// Sets a property.
    pub fn set(&mut self, name: &str, value: Vec<u8>) {
        match self.properties.iter_mut().find(|p| p.0 == name) {
            Some(p) => p.1 = value,
            None => self.properties.push((name.to_owned(), value)),
        }
    }

    /// Sets a one-cell property.
    pub fn set_u32(&mut self, name: &str, value: u32) {
        self.set(name, value.to_be_bytes().to_vec());
    }

    /// Sets a property to a text.
    pub fn set_text(&mut self, name: &str, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.set(name, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree {
            reservations: vec![(0x1000, 0x20)],
            ..Tree::default()
        };
        tree.root.set_u32("#address-cells", 1);
        let memory = tree.root.child_or_new("memory@0");
        memory.set_text("device_type", "memory");
        memory.set("reg", vec![0, 0, 0, 0, 8, 0, 0, 0]);
        tree.root
            .child_or_new("soc")
            .child_or_new("uart@10")
            .set("odd", vec![1, 2, 3]);
        tree
    }

    #[test]
    fn a_tree_written_reads_back_the_same() {
        assert_eq!(Tree::parse(&tree().to_blob()), Ok(tree()));
    }

    #[test]
    fn paths_may_leave_out_unit_addresses() {
        let mut tree = tree();
        assert_eq!(tree.node("/memory").unwrap().get("reg").unwrap()[4], 8);
        assert!(tree.node("/soc/uart@10").is_some());
        assert!(tree.node("/soc/uart@11").is_none());
    }

    #[test]
    fn no_prefix_of_a_blob_panics_or_passes() {
        let blob = tree().to_blob();
        for len in 0..blob.len() {
            assert!(Tree::parse(&blob[..len]).is_err());
        }
    }

    #[test]
    fn no_damaged_byte_panics() {
        let blob = tree().to_blob();
        for at in 0..blob.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bad = blob.clone();
                bad[at] = value;
                let _ = Tree::parse(&bad);
            }
        }
    }
}
