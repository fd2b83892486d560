use super::*;
use crate::flash::Flash;
use crate::flash::settings::{Cell, Programming};

/// Returns the operations of copies, in order, on a chip whose word lines have three pages, and whose reads and
/// programs use the bus: `r` a read, `p` a program.
fn operations(copy: impl FnOnce(&mut Work)) -> String {
    let (cell, programming) = (Cell::Tlc, Programming::WordLine);
    let flash = Flash { command_ns: 100, cell, programming, pages_per_block: 192, ..Flash::default() };
    let mut work = Work::new(&flash, flash.page_bytes / 4, 0, false);
    work.keep_apart();
    copy(&mut work);
    work.copy(0, Cause::Gc);
    let letter = |step: &super::super::Step| if step.operation == Operation::Read { 'r' } else { 'p' };
    work.steps().iter().map(letter).collect()
}

#[test]
fn units_of_one_slot_are_read_and_programmed_in_turn() {
    let order = operations(|work| {
        work.sources(0..3);
        work.target(Target { first: 64, units: 3, slots: 1, begun: 0, copies: 3 });
    });
    assert_eq!(order, "rprprp");
}

/// Units used to be programmed one after each read, before the other pages with their data had been read.
#[test]
fn a_unit_is_programmed_after_all_its_pages_were_read() {
    let order = operations(|work| {
        work.sources(0..5);
        work.target(Target { first: 64, units: 2, slots: 3, begun: 0, copies: 5 });
    });
    assert_eq!(order, "rrrprrp");
}

#[test]
fn slots_of_one_page_are_read_at_once_and_two_units_share_it() {
    let order = operations(|work| {
        // Pages with 3, 4 and 1 slots that are copied into units of 4.
        [0, 0, 0, 1, 1, 1, 1, 2].into_iter().for_each(|page| work.source(page));
        work.target(Target { first: 64, units: 2, slots: 4, begun: 0, copies: 8 });
    });
    assert_eq!(order, "rrprp");
}

#[test]
fn slots_that_are_there_already_need_no_read() {
    let order = operations(|work| {
        work.sources(0..3);
        // The first unit takes one copy after two other slots; the rest goes to another block.
        work.target(Target { first: 64, units: 1, slots: 3, begun: 2, copies: 1 });
        work.target(Target { first: 90, units: 1, slots: 3, begun: 0, copies: 2 });
    });
    assert_eq!(order, "rprrp");
}

#[test]
fn only_the_numbers_of_pages_are_known() {
    assert_eq!(operations(|work| work.unnamed([3, 2])), "rprpr");
}
