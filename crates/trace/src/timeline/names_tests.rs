use super::*;

#[test]
fn numbers_of_names_are_distinct_and_not_zero() {
    let names: Vec<u64> = Name::all(true, true).map(Name::iid).collect();
    assert_eq!(names, (1..=names.len() as u64).collect::<Vec<_>>());
    let texts: Vec<u64> = text::all(true).map(|(iid, _)| iid).collect();
    assert_eq!(texts, (1..=texts.len() as u64).collect::<Vec<_>>());
    let args: Vec<u64> = ARGS.iter().map(|&(arg, _)| arg as u64).collect();
    assert_eq!(args, (1..=args.len() as u64).collect::<Vec<_>>());
}
