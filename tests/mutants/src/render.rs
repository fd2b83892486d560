//! Text with the switches in it.

use std::collections::HashSet;
use std::ops::Range;

use crate::find::{Edit, Shape};

/// A mutant as it is in the copy.
pub struct Placed {
    /// Function it is in.
    pub function: String,
    /// What it changes.
    pub what: String,
    /// Bytes of the copy that only this mutant runs.
    pub branch: Range<usize>,
    /// Bytes of the copy that the switch around its place takes up.
    pub whole: Range<usize>,
}

/// Returns `text` with the `chosen` mutants of these places, which are numbered from `first` on.
pub fn render(text: &str, edits: &[Edit], first: usize, chosen: &HashSet<usize>) -> (String, Vec<Placed>) {
    let mut mutants = Vec::new();
    let mut numbers = Vec::new();
    for edit in edits {
        numbers.push(first + mutants.len());
        let function = edit.function.clone();
        mutants.extend(edit.mutants.iter().map(|(what, _)| Placed {
            function: function.clone(),
            what: what.clone(),
            branch: 0..0,
            whole: 0..0,
        }));
    }
    let mut order: Vec<usize> = (0..edits.len()).collect();
    // An enclosing place comes before what it encloses.
    order.sort_by_key(|&at| (edits[at].range.start, std::cmp::Reverse(edits[at].range.end), at));
    let mut copy = Copy { text, edits, order, numbers, first, chosen, out: String::new(), mutants };
    copy.part(0..text.len(), &mut 0);
    (copy.out, copy.mutants)
}

struct Copy<'a> {
    text: &'a str,
    edits: &'a [Edit],
    order: Vec<usize>,
    numbers: Vec<usize>,
    first: usize,
    chosen: &'a HashSet<usize>,
    out: String,
    mutants: Vec<Placed>,
}

impl Copy<'_> {
    /// Writes a part of the text with its edits, starting with number `next`.
    fn part(&mut self, range: Range<usize>, next: &mut usize) {
        let mut at = range.start;
        while let Some(&edit) = self.order.get(*next) {
            let inner = self.edits[edit].range.clone();
            if inner.start >= range.end || inner.end > range.end {
                break;
            }
            self.out.push_str(&self.text[at..inner.start]);
            at = inner.end;
            *next += 1;
            self.edit(edit, next);
        }
        self.out.push_str(&self.text[at..range.end]);
    }

    fn edit(&mut self, at: usize, next: &mut usize) {
        let Edit { range, shape, mutants, .. } = &self.edits[at];
        let numbers = self.numbers[at]..self.numbers[at] + mutants.len();
        let live: Vec<usize> = numbers.clone().filter(|number| self.chosen.contains(number)).collect();
        let start = self.out.len();
        match shape {
            _ if live.is_empty() => self.part(range.clone(), next),
            Shape::Expression => {
                self.out.push('(');
                for &number in &live {
                    let branch = self.out.len();
                    let code = &mutants[number - numbers.start].1;
                    self.out += &format!("if crate::switched::on({number}) {{ {code} }} else ");
                    self.mutants[number - self.first].branch = branch..self.out.len();
                }
                self.out.push_str("{ ");
                self.part(range.clone(), next);
                self.out.push_str(" })");
            }
            Shape::Negated => {
                self.out += &format!("(crate::switched::on({}) != (", live[0]);
                self.part(range.clone(), next);
                self.out.push_str("))");
            }
            Shape::Statement => {
                self.out += &format!("if !crate::switched::on({}) {{ ", live[0]);
                self.part(range.clone(), next);
                self.out.push_str(" }");
            }
            Shape::Body => {
                for &number in &live {
                    let branch = self.out.len();
                    let code = &mutants[number - numbers.start].1;
                    self.out += &format!(" if crate::switched::on({number}) {{ return {code}; }}");
                    self.mutants[number - self.first].branch = branch..self.out.len();
                }
            }
        }
        for number in live {
            self.mutants[number - self.first].whole = start..self.out.len();
        }
    }
}
