use super::*;

fn program(page: u32) -> Change {
    Change::Program { page, kind: Kind::Data, spares: Box::new([Spare { owner: 7, seq: 3 }]) }
}

#[test]
fn programs_out_of_order_or_twice_are_faults() {
    for pages in [&[0, 2][..], &[0, 0], &[1]] {
        let mut media = Media::new(1, 2, 4, 0);
        pages.iter().for_each(|&page| media.apply(program(page)));
        assert!(media.fault().is_some(), "{pages:?}");
    }
    let mut media = Media::new(1, 2, 4, 0);
    media.apply(program(0));
    media.apply(Change::Erase { block: 0 });
    media.apply(program(0));
    assert_eq!((media.fault(), media.erases(0), media.used(0)), (None, 1, 1));
}

#[test]
fn what_is_torn_holds_nothing_and_takes_its_place() {
    let mut media = Media::new(1, 2, 4, 0);
    media.tear(program(0));
    media.apply(program(1));
    assert_eq!((media.version(Kind::Data, 1, 0, 7), media.version(Kind::Data, 1, 1, 7)), (None, Some(3)));
    assert_eq!((media.version(Kind::Map, 1, 1, 7), media.version(Kind::Data, 1, 1, 8)), (None, None));
    media.tear(Change::Erase { block: 0 });
    assert_eq!((media.used(0), media.erases(0), media.page(1)), (4, 0, &Page::Torn));
    media.apply(program(0));
    assert!(media.fault().is_some(), "programmed without an erase");
}
