// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with a made-up cache of 256 bytes in two ways, one address space, and two states of the board.

use arm::{CacheGeometry, HeldEntry, HeldLine, Mva, Pa, TlbSide, WaitingWrite};

use super::compose::{self, Moments};
use super::sheet::Sheet;
use super::state::{Focus, State};
use super::{svg, text};

const OLD: u32 = 0x1111_1111;
const NEW: u32 = 0x2222_2222;
const PAGE: Pa = Pa(0x0250_0000);

fn line(place: (u32, u32), mva: u32, halves: u8, first: u32) -> HeldLine {
    let mut words = [OLD; 8];
    words[0] = first;
    HeldLine {
        mini: false,
        place,
        mva: Mva(mva),
        pa: Some(PAGE),
        halves,
        words,
    }
}

fn entry(number: usize, mva: u32) -> HeldEntry {
    HeldEntry {
        side: TlbSide::Both,
        number,
        mva: Mva(mva),
        bytes: 4096,
        pa: PAGE,
        ap: 3,
        domain: 1,
        cb: 3,
        locked: false,
    }
}

/// State in which the newest word is in a dirty line at one address.
fn before() -> State {
    let shape = CacheGeometry { size: 256, ways: 2 };
    State {
        cycle: 1000,
        pc: 0x1_0000,
        instruction: Some("ldr r0, [r0]".to_string()),
        registers: [0; 15],
        pid: 0,
        shapes: [shape, shape],
        lines: [
            vec![line((0, 1), 0xb6f1_0000, 0b01, NEW)],
            vec![line((1, 0), 0x1_0020, 0, 0xe590_0000)],
        ],
        entries: vec![entry(4, 0xb6f1_0000)],
        waiting: Vec::new(),
    }
}

/// State in which a load has filled another line through the other address, and a write waits.
fn after() -> State {
    let mut after = before();
    (after.cycle, after.pc, after.registers[0]) = (1100, 0x1_0004, OLD);
    after.instruction = Some("bx lr".to_string());
    after.lines[0].insert(0, line((0, 0), 0xb6f0_0000, 0, OLD));
    after.entries.push(entry(5, 0xb6f0_0000));
    after.waiting.push(WaitingWrite {
        pa: Pa(0x0250_0040),
        bytes: 4,
        words: vec![7],
        victim: false,
    });
    after
}

fn sheet(of: impl FnOnce(&Moments<'_>) -> Sheet) -> Sheet {
    let (before, after) = (before(), after());
    of(&Moments {
        states: [&before, &after],
        names: [Some("load_word".to_string()), None],
    })
}

fn of_line() -> Sheet {
    let asked = Focus {
        va: 0xb6f0_0000,
        mva: Mva(0xb6f0_0000),
        pa: PAGE,
    };
    let memory = [Some(OLD); 8];
    sheet(|moments| compose::of_line("a < b".to_string(), moments, asked, [memory; 2]))
}

fn of_all() -> Sheet {
    sheet(|moments| compose::of_all("all of it".to_string(), moments))
}

/// Compares a sheet with a file whose first line is the licence.
#[track_caller]
fn shows(sheet: &Sheet, file: &str) {
    let (_, expected) = file.split_once('\n').expect("a line of licence");
    assert_eq!(text::text(sheet), expected);
}

#[test]
fn a_line_is_shown_beside_its_alias_and_memory() {
    shows(&of_line(), include_str!("tests/line.txt"));
}

#[test]
fn all_lines_are_a_letter_each_and_what_changed_is_shown_whole() {
    shows(&of_all(), include_str!("tests/all.txt"));
}

/// Returns the names of all elements. Checks that all elements are closed in order.
fn elements(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') && !text.contains('"'), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let name = tag.split(' ').next().expect("a name");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        all.push(name);
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
    all
}

#[test]
fn the_picture_is_well_formed_and_has_old_and_new_words() {
    for sheet in [of_line(), of_all()] {
        let picture = svg::svg(&sheet);
        let elements = elements(&picture);
        assert_eq!(elements[..3], ["svg", "title", "rect"]);
        assert!(elements.contains(&"text"));
        assert!(picture.contains(">11111111</text>"), "{picture}");
        assert!(picture.ends_with("</svg>\n"));
    }
    for part in [">22222222</text>", "a &lt; b"] {
        assert!(svg::svg(&of_line()).contains(part), "{part}");
    }
    assert_eq!(svg::svg(&of_line()), svg::svg(&of_line()));
}

#[test]
fn nothing_is_marked_where_nothing_changed() {
    let state = before();
    let moments = Moments {
        states: [&state, &state],
        names: [None, None],
    };
    let sheet = compose::of_all(String::new(), &moments);
    let rows = sheet.parts.iter().flat_map(|part| &part.rows);
    let mut pieces = rows.flat_map(|row| row.cells.iter().flatten());
    assert!(pieces.all(|piece| !piece.changed));
}
