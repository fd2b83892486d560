use super::*;

fn flash(levels: [u32; 4], parallel: Parallel) -> Flash {
    Flash {
        channels: levels[0],
        chips_per_channel: levels[1],
        dies_per_chip: levels[2],
        planes_per_die: levels[3],
        blocks_per_plane: 8,
        pages_per_block: 4,
        parallel,
        ..Flash::default()
    }
}

fn options() -> [Parallel; 3] {
    let plain = Parallel::default();
    [plain, Parallel { interleave: true, ..plain }, Parallel { multi_plane: MultiPlane::Free, ..plain }]
}

#[test]
fn every_order_of_four_letters_is_there_once() {
    let mut names = ORDERS.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 24);
    for name in ORDERS {
        let Allocation::Static(order) = Allocation::named(name) else { panic!("{name} is static") };
        let mut levels = order.map(|level| level as u8);
        levels.sort_unstable();
        assert_eq!(levels, [0, 1, 2, 3], "{name}");
    }
}

/// Returns a page's place, by a plain calculation: the level of the first letter varies fastest.
fn spelled_out(name: &str, sizes: [u32; 4], page: u32) -> [u32; 4] {
    let (mut rest, mut at) = (page, [0; 4]);
    for letter in name.chars() {
        let level = "cwdp".find(letter).unwrap();
        at[level] = rest % sizes[level];
        rest /= sizes[level];
    }
    at
}

#[test]
fn pages_go_round_the_levels_in_the_order_named() {
    let sizes = [3, 2, 2, 4];
    for name in ORDERS {
        for parallel in options() {
            let flash = flash(sizes, parallel);
            let spread = Spread::new(&flash, Allocation::named(name));
            let (places, cycle) = (spread.places(), spread.cycle());
            assert_eq!(places.len() as u32, flash.luns());
            for page in 0..48 {
                let [channel, way, die, plane] = spelled_out(name, sizes, page);
                let chip = way * 3 + channel;
                let place = places[cycle[page as usize] as usize];
                assert_eq!((place.channel, place.chip), (channel, chip), "{name} {page}");
                if parallel.interleave {
                    assert_eq!(place.die, chip * 2 + die, "{name} {page}");
                }
                if parallel.multi_plane != MultiPlane::Off {
                    assert_eq!(place.plane, (chip * 2 + die) * 4 + plane, "{name} {page}");
                }
                if spread.in_turn() {
                    assert_eq!(cycle[page as usize], page % flash.luns(), "{name} {page}");
                }
            }
            // With planes as LUNs, the LUNs take turns page by page in all 24 orders.
            assert!(spread.in_turn() || parallel.multi_plane == MultiPlane::Off);
        }
    }
}

#[test]
fn the_most_pages_of_a_lun_are_counted() {
    for sizes in [[3, 2, 2, 4], [1, 1, 1, 1], [2, 1, 3, 1], [1, 1, 2, 2]] {
        for name in ORDERS {
            for parallel in options() {
                let flash = flash(sizes, parallel);
                let spread = Spread::new(&flash, Allocation::named(name));
                let cycle = spread.cycle();
                let mut count = vec![0; flash.luns() as usize];
                for page in 0..3 * cycle.len() {
                    assert_eq!(
                        spread.most(page as u64),
                        count.iter().copied().max().unwrap(),
                        "{name} {page}"
                    );
                    count[cycle[page % cycle.len()] as usize] += 1;
                }
            }
        }
    }
}

#[test]
fn the_default_is_eq_1_of_vios() {
    let flash = flash([4, 3, 2, 2], Parallel::default());
    let spread = Spread::new(&flash, Allocation::CHANNEL_FIRST);
    assert!(spread.in_turn());
    for (chip, place) in spread.places().iter().enumerate() {
        assert_eq!((place.chip, place.channel), (chip as u32, chip as u32 % 4));
    }
}
