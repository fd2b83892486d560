//! The choices of the registered victim policies, compared with a plain scan of all closed blocks.

use ftlab_conformance::{Known, Model, SPACE, settings, victims_judged};
use ftlab_core::ftl::gc::{Closed, Need, Policy};
use ftlab_core::util::stream;

fn fewest(candidates: impl Iterator<Item = (u32, Known)>) -> Option<u32> {
    candidates.min_by_key(|(_, known)| (known.valid, known.came)).map(|(block, _)| block)
}

/// Returns twice the cost-benefit value of a block; a block without valid slots has the greatest value.
fn worth(known: Known, now: u64) -> f64 {
    if known.valid == 0 {
        return f64::INFINITY;
    }
    let u = f64::from(known.valid) / f64::from(SPACE.slots_per_block);
    (1.0 - u) / u * (now - known.modified) as f64
}

/// Runs the suite on a policy with this window; `judge` checks the policy's choices.
fn scan(name: &str, window: u32, judge: impl FnMut(&Model, Need, u32)) {
    let mut settings = settings();
    settings.ftl.victims.windowed_greedy.window = window;
    settings.ftl.victims.d_choices.draws = 3;
    victims_judged(name, &settings, judge);
}

#[test]
fn greedy_takes_the_fewest_valid() {
    let fewest = |model: &Model, need: Need, chosen| assert_eq!(Some(chosen), fewest(model.of(need.lun)));
    scan("greedy", 1, fewest);
}

#[test]
fn cyclic_goes_by_number() {
    scan("cyclic", 1, |model, need, chosen| assert_eq!(Some(chosen), model.due(need.lun)));
}

#[test]
fn fifo_takes_the_oldest() {
    scan("fifo", 1, |model, need, chosen| assert_eq!(chosen, model.oldest(need.lun, 1)[0].0));
}

#[test]
fn windowed_greedy_takes_the_fewest_of_the_oldest() {
    for window in 1..14 {
        let judge = |model: &Model, need: Need, chosen| {
            // Among equal blocks the order of insertion decides, which the model does not keep.
            let inside = model.oldest(need.lun, window as usize);
            let least = inside.iter().map(|(_, known)| known.valid).min();
            assert!(inside.iter().any(|(block, _)| *block == chosen));
            assert_eq!(Some(model.known(chosen).valid), least);
        };
        scan("windowed-greedy", window, judge);
    }
}

#[test]
fn cost_benefit_takes_what_is_worth_most() {
    let judge = |model: &Model, Need { lun, now, .. }: Need, chosen| {
        let known = model.known(chosen);
        assert!(SPACE.gainful(known.valid));
        let gainful = model.of(lun).filter(|(_, known)| SPACE.gainful(known.valid));
        let most = gainful.map(|(_, known)| worth(known, now)).fold(0.0, f64::max);
        let worth = worth(known, now);
        assert!(worth == most || worth > most * (1.0 - 1e-12), "{worth} of {most}");
    };
    scan("cost-benefit", 1, judge);
}

/// Policies that draw take the block with the fewest valid pages once they have drawn in vain as many times
/// as there are blocks.
#[test]
fn draws_end() {
    for name in ["random", "d-choices"] {
        let judge = |model: &Model, Need { lun, gainless, .. }: Need, chosen| {
            let least = model.of(lun).map(|(_, known)| known.valid).min();
            let drawn = (gainless as usize) < model.of(lun).count();
            assert!(drawn || Some(model.known(chosen).valid) == least);
        };
        scan(name, 1, judge);
    }
}

/// A policy that draws reaches every block and follows its seed.
#[test]
fn draws_are_fair_and_seeded() {
    let draw = |seed| {
        let mut policy = Policy::new("random", &settings().ftl.victims, SPACE, stream(seed, "test"));
        (0..12).for_each(|block| policy.close(Closed { lun: 0, block, valid: 4, now: 0 }));
        let need = Need { lun: 0, now: 0, gainless: 0 };
        (0..12_000).map(|_| policy.choose(need, &|_| 4, &|_| 0)).collect::<Vec<_>>()
    };
    let drawn = draw(1);
    for block in 0..12 {
        let count = drawn.iter().filter(|&&other| other == block).count();
        // The bounds are five standard deviations of a binomial distribution of 12,000 draws with probability 1/12.
        assert!((850..1150).contains(&count), "block {block} was drawn {count} times");
    }
    assert_eq!(drawn, draw(1));
    assert_ne!(drawn, draw(2));
}
