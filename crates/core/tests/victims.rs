//! The choices of the registered victim policies against a plain scan of all closed blocks.

use ftlab_conformance::{Known, Model, SPACE, settings, victims_of};
use ftlab_core::ftl::gc::{Need, Own, Policy, Typed, Victims, typed};
use ftlab_core::util::stream;

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

/// A policy, its keys with this window, and what its choice must be.
struct Scan<'a>(u32, &'a dyn Fn(&Model, Need, u32));

impl Typed for Scan<'_> {
    fn policy<V: Victims>(self, keys: &Own) {
        let mut keys = keys.clone();
        keys.windowed_greedy.window = self.0;
        keys.d_choices.draws = 3;
        victims_of(|| V::new(&keys, SPACE, stream(1, "test")), self.1);
    }
}

#[test]
fn greedy_takes_the_fewest_valid() {
    let fewest = |model: &Model, need: Need, chosen| assert_eq!(Some(chosen), fewest(model.of(need.chip)));
    typed("greedy", Scan(1, &fewest));
}

#[test]
fn cyclic_goes_by_number() {
    typed("cyclic", Scan(1, &|model, need, chosen| assert_eq!(Some(chosen), model.due(need.chip))));
}

#[test]
fn fifo_takes_the_oldest() {
    typed("fifo", Scan(1, &|model, need, chosen| assert_eq!(chosen, model.oldest(need.chip, 1)[0].0)));
}

#[test]
fn windowed_greedy_takes_the_fewest_of_the_oldest() {
    for window in 1..14 {
        let scan = |model: &Model, need: Need, chosen| {
            // Among equals the order of entering decides, which the model does not keep.
            let inside = model.oldest(need.chip, window as usize);
            let fewest = inside.iter().map(|(_, known)| known.valid).min();
            assert!(inside.iter().any(|(block, _)| *block == chosen));
            assert_eq!(Some(model.known(chosen).valid), fewest);
        };
        typed("windowed-greedy", Scan(window, &scan));
    }
}

#[test]
fn cost_benefit_takes_what_is_worth_most() {
    let scan = |model: &Model, Need { chip, now, .. }: Need, chosen| {
        let known = model.known(chosen);
        assert!(SPACE.gainful(known.valid));
        let gainful = model.of(chip).filter(|(_, known)| SPACE.gainful(known.valid));
        let most = gainful.map(|(_, known)| worth(known, now)).fold(0.0, f64::max);
        let worth = worth(known, now);
        assert!(worth == most || worth > most * (1.0 - 1e-12), "{worth} of {most}");
    };
    typed("cost-benefit", Scan(1, &scan));
}

/// Policies that draw take the fewest valid once they have drawn in vain as often as there are blocks.
#[test]
fn draws_end() {
    for name in ["random", "d-choices"] {
        let scan = |model: &Model, Need { chip, gainless, .. }: Need, chosen| {
            let fewest = model.of(chip).map(|(_, known)| known.valid).min();
            let drawn = (gainless as usize) < model.of(chip).count();
            assert!(drawn || Some(model.known(chosen).valid) == fewest);
        };
        typed(name, Scan(1, &scan));
    }
}

/// A policy that draws reaches every block and follows its seed.
#[test]
fn draws_are_fair_and_seeded() {
    let draw = |seed| {
        let mut settings = settings();
        settings.seed = seed;
        let mut policy = Policy::new("random", &settings, SPACE, "test");
        (0..12).for_each(|block| policy.close(0, block, 4, 0));
        let need = Need { chip: 0, now: 0, gainless: 0 };
        (0..12_000).map(|_| policy.choose(need, |_| 4, |_| 0)).collect::<Vec<_>>()
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
