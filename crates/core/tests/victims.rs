//! Every policy's choice against a plain scan of all closed blocks.

mod common;

use std::collections::BTreeMap;

use ftlab_core::ftl::gc::{Need, Policy, Space};
use proptest::prelude::*;

const SPACE: Space = Space { chips: 2, blocks_per_chip: 12, slots_per_block: 8, slots_per_page: 2 };

/// What is known of a closed block.
#[derive(Clone, Copy, Debug)]
struct Known {
    valid: u32,
    /// Order of closing.
    closed: u64,
    /// Order in which it came to its number of valid slots.
    came: u64,
    modified: u64,
}

/// The closed blocks of both chips, in no clever order.
#[derive(Default)]
struct Model {
    blocks: BTreeMap<u32, Known>,
    events: u64,
    /// By chip the block that is next by number, if one is closed.
    due: [Option<u32>; 2],
}

impl Model {
    fn of(&self, chip: u32) -> impl Iterator<Item = (u32, Known)> {
        let blocks = chip * SPACE.blocks_per_chip..(chip + 1) * SPACE.blocks_per_chip;
        self.blocks.range(blocks).map(|(&block, &known)| (block, known))
    }

    fn close(&mut self, block: u32, known: Known) {
        self.blocks.insert(block, known);
        self.due[(block / SPACE.blocks_per_chip) as usize].get_or_insert(block);
    }

    fn remove(&mut self, block: u32) {
        self.blocks.remove(&block);
        let chip = block / SPACE.blocks_per_chip;
        if self.due[chip as usize] == Some(block) {
            let numbers: Vec<u32> = self.of(chip).map(|(other, _)| other).collect();
            let later = numbers.iter().find(|&&other| other > block);
            self.due[chip as usize] = later.or(numbers.first()).copied();
        }
    }

    fn fewest(candidates: impl Iterator<Item = (u32, Known)>) -> Option<u32> {
        candidates.min_by_key(|(_, known)| (known.valid, known.came)).map(|(block, _)| block)
    }

    /// Value for cost-benefit, times two; a block without valid slots is worth most.
    fn worth(known: Known, now: u64) -> f64 {
        if known.valid == 0 {
            return f64::INFINITY;
        }
        let u = f64::from(known.valid) / f64::from(SPACE.slots_per_block);
        (1.0 - u) / u * (now - known.modified) as f64
    }

    /// The window's blocks: the oldest. One enters when there is room and keeps its place.
    fn oldest(&self, chip: u32, window: usize) -> Vec<(u32, Known)> {
        let mut all: Vec<_> = self.of(chip).collect();
        all.sort_by_key(|(_, known)| known.closed);
        all.truncate(window);
        all
    }
}

fn policy(name: &str, window: u32) -> Policy {
    let mut settings = common::settings();
    settings.ftl.victims.windowed_greedy.window = window;
    settings.ftl.victims.d_choices.draws = 3;
    Policy::new(name, &settings, SPACE, "test")
}

/// Is the choice what the policy's description says?
fn check(name: &str, model: &Model, need: Need, window: usize, chosen: u32) -> Result<(), TestCaseError> {
    let Need { chip, now, gainless } = need;
    let known = model.blocks[&chosen];
    prop_assert_eq!(chosen / SPACE.blocks_per_chip, chip);
    let count = model.of(chip).count() as u32;
    match name {
        "greedy" => prop_assert_eq!(Some(chosen), Model::fewest(model.of(chip))),
        "cyclic" => prop_assert_eq!(Some(chosen), model.due[chip as usize]),
        "fifo" => prop_assert_eq!(chosen, model.oldest(chip, 1)[0].0),
        "windowed-greedy" => {
            // Among equals the order of entering decides, which the model does not keep.
            let inside = model.oldest(chip, window);
            let fewest = inside.iter().map(|(_, known)| known.valid).min();
            prop_assert!(inside.iter().any(|(block, _)| *block == chosen));
            prop_assert_eq!(Some(known.valid), fewest);
        }
        "cost-benefit" => {
            prop_assert!(SPACE.gainful(known.valid));
            let gainful = model.of(chip).filter(|(_, known)| SPACE.gainful(known.valid));
            let most = gainful.map(|(_, known)| Model::worth(known, now)).fold(0.0, f64::max);
            let worth = Model::worth(known, now);
            prop_assert!(worth == most || worth > most * (1.0 - 1e-12), "{} of {}", worth, most);
        }
        _ if gainless >= count => {
            prop_assert_eq!(Some(known.valid), model.of(chip).map(|(_, known)| known.valid).min());
        }
        _ => (),
    }
    Ok(())
}

proptest! {
    #[test]
    fn choices_are_what_a_scan_finds(
        name in prop::sample::select(common::victim_policies()),
        window in 1u32..14,
        steps in proptest::collection::vec((0u8..8, any::<u32>()), 1..400),
    ) {
        let mut policy = policy(name, window);
        let mut model = Model::default();
        let mut now = 0;
        for (step, at) in steps {
            model.events += 1;
            let block = at % (SPACE.chips * SPACE.blocks_per_chip);
            let chip = block / SPACE.blocks_per_chip;
            match (step, model.blocks.get(&block).copied()) {
                (0..3, None) => {
                    let valid = at >> 8 & 7;
                    let known = Known { valid, closed: model.events, came: model.events, modified: now };
                    model.close(block, known);
                    policy.close(chip, block, valid, now);
                }
                (0..5, Some(known)) if known.valid > 0 => {
                    let known = Known { valid: known.valid - 1, came: model.events, modified: now, ..known };
                    model.blocks.insert(block, known);
                    policy.invalidate(chip, block, known.valid, now);
                }
                (5, Some(_)) => {
                    policy.remove(chip, block, |block| model.blocks[&block].valid);
                    model.remove(block);
                }
                (6 | 7, _) if model.of(chip).any(|(_, known)| SPACE.gainful(known.valid)) => {
                    let need = Need { chip, now, gainless: at >> 8 & 15 };
                    let chosen = policy.choose(need, |block| model.blocks[&block].valid);
                    check(name, &model, need, window as usize, chosen)?;
                    policy.remove(chip, chosen, |block| model.blocks[&block].valid);
                    model.remove(chosen);
                }
                _ => now += u64::from(at % 5),
            }
        }
        for chip in 0..SPACE.chips {
            let mut held = Vec::new();
            policy.each(chip, &mut |block, _| held.push(block));
            held.sort_unstable();
            prop_assert_eq!(held, model.of(chip).map(|(block, _)| block).collect::<Vec<_>>());
        }
    }
}

/// A policy that draws reaches every block and follows its seed.
#[test]
fn draws_are_fair_and_seeded() {
    let draw = |seed| {
        let mut settings = common::settings();
        settings.seed = seed;
        let mut policy = Policy::new("random", &settings, SPACE, "test");
        (0..12).for_each(|block| policy.close(0, block, 4, 0));
        let need = Need { chip: 0, now: 0, gainless: 0 };
        (0..12_000).map(|_| policy.choose(need, |_| 4)).collect::<Vec<_>>()
    };
    let drawn = draw(1);
    for block in 0..12 {
        let count = drawn.iter().filter(|&&other| other == block).count();
        // Five standard deviations of a binomial of 12,000 and 1/12.
        assert!((850..1150).contains(&count), "block {block} was drawn {count} times");
    }
    assert_eq!(drawn, draw(1));
    assert_ne!(drawn, draw(2));
}
