//! Which file names which: the source files of a crate with their `use` trees and paths, including those among the
//! tokens of macros. Tests are left out, and so are the lines of a `registry!`, which name the parts that are to be
//! made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path in the source, or the path of a module: `["ftl", "log", "Log"]`.
type Names = Vec<String>;

/// The source files and modules of one crate.
#[derive(Default)]
pub struct House {
    /// The file of each module that has a file of its own.
    files: BTreeMap<Names, PathBuf>,
    /// Modules without a file of their own: folders, and modules inside another file.
    others: BTreeSet<Names>,
    /// The names that each module brings in, and what they stand for.
    brought: BTreeMap<Names, BTreeMap<String, Names>>,
    /// Pairs of a module and a path that it names.
    named: Vec<(Names, Names)>,
}

fn text(token: Option<&TokenTree>) -> String {
    match token {
        Some(TokenTree::Group(_)) | None => String::new(),
        Some(token) => token.to_string(),
    }
}

fn inside(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

/// Whether there is a `::` at this place.
fn colons(tokens: &[TokenTree], at: usize) -> bool {
    text(tokens.get(at)) == ":" && text(tokens.get(at + 1)) == ":"
}

/// Collects the leaves of a `use` tree, each with the name that it brings in.
fn leaves(tokens: &[TokenTree], mut prefix: Names, found: &mut Vec<(Names, String)>) {
    let mut at = 0;
    loop {
        if let Some(group) = inside(tokens.get(at), Delimiter::Brace) {
            let group: Vec<TokenTree> = group.into_iter().collect();
            let parts = group.split(|token| text(Some(token)) == ",");
            return parts
                .filter(|part| !part.is_empty())
                .for_each(|part| leaves(part, prefix.clone(), found));
        }
        let name = text(tokens.get(at));
        if name != "self" || prefix.is_empty() {
            prefix.push(name);
        }
        if !colons(tokens, at + 1) {
            break;
        }
        at += 3;
    }
    let renamed = text(tokens.get(at + 1)) == "as";
    let name = if renamed { text(tokens.get(at + 2)) } else { prefix[prefix.len() - 1].clone() };
    found.push((prefix, name));
}

impl House {
    /// Reads the crate in a folder.
    pub fn of(folder: &Path) -> House {
        let mut house = House::default();
        house.enter(&folder.join("src"), &[]);
        for (module, path) in house.files.clone() {
            let source = fs::read_to_string(&path).unwrap();
            let tokens = source.parse::<TokenStream>().unwrap_or_else(|_| panic!("{}", path.display()));
            house.read(tokens, &module, false);
        }
        house
    }

    fn enter(&mut self, folder: &Path, module: &[String]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let mut inner = module.to_vec();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if !["lib", "main", "mod"].contains(&stem) {
                inner.push(stem.to_owned());
            }
            if path.is_dir() {
                self.enter(&path, &inner);
                self.others.insert(inner);
            } else if path.extension().is_some_and(|end| end == "rs") {
                self.files.insert(inner, path);
            }
        }
    }

    /// Reads a module's tokens, or a group of them.
    fn read(&mut self, tokens: TokenStream, module: &Names, grouped: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let word = text(tokens.get(at));
            let next = text(tokens.get(at + 1));
            if word == "#"
                && inside(tokens.get(at + 1), Delimiter::Bracket)
                    .is_some_and(|about| about.to_string().replace(" ", "") == "cfg(test)")
            {
                // The item that follows belongs to a test, and is skipped.
                at += tokens[at..]
                    .iter()
                    .position(|token| {
                        inside(Some(token), Delimiter::Brace).is_some() || text(Some(token)) == ";"
                    })
                    .unwrap()
                    + 1;
            } else if word == "registry" && next == "!" {
                at += 3;
            } else if word == "mod" && inside(tokens.get(at + 2), Delimiter::Brace).is_some() && !grouped {
                let mut inner = module.clone();
                inner.push(next);
                self.others.insert(inner.clone());
                self.read(inside(tokens.get(at + 2), Delimiter::Brace).unwrap(), &inner, false);
                at += 3;
            } else if word == "use" && next != "<" {
                let end = at + tokens[at..].iter().position(|token| text(Some(token)) == ";").unwrap();
                let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
                // `pub use` and `pub(crate) use` pass a name on.
                let restricted = inside(before(1), Delimiter::Parenthesis).is_some();
                let passed = text(before(if restricted { 2 } else { 1 })) == "pub";
                let mut found = Vec::new();
                leaves(&tokens[at + 1..end], Vec::new(), &mut found);
                for (path, name) in found {
                    if !passed {
                        self.named.push((module.clone(), path.clone()));
                    }
                    self.brought.entry(module.clone()).or_default().insert(name, path);
                }
                at = end;
            } else if matches!(tokens[at], TokenTree::Ident(_)) && colons(&tokens, at + 1) {
                let mut path = vec![word];
                let own = at > 0 && text(tokens.get(at - 1)) == "$" && path[0] != "crate";
                while colons(&tokens, at + 1) && matches!(tokens.get(at + 3), Some(TokenTree::Ident(_))) {
                    at += 3;
                    path.push(text(tokens.get(at)));
                }
                if !own {
                    self.named.push((module.clone(), path));
                }
                at += 1;
            } else {
                if let TokenTree::Group(group) = &tokens[at] {
                    self.read(group.stream(), module, true);
                }
                at += 1;
            }
        }
    }

    fn is_module(&self, names: &[String]) -> bool {
        self.files.contains_key(names) || self.others.contains(names)
    }

    /// Returns the path from the root of the crate; `None` if it is in another crate.
    fn absolute(&self, module: &[String], path: &[String], brought: bool) -> Option<Names> {
        let mut from = module.to_vec();
        let mut at = 0;
        match path[0].as_str() {
            "crate" => {
                from.clear();
                at = 1;
            }
            "self" => at = 1,
            "super" => {
                while path.get(at).is_some_and(|name| name == "super") {
                    from.pop();
                    at += 1;
                }
            }
            first => {
                let known = self.brought.get(module).and_then(|names| names.get(first)).filter(|_| brought);
                if let Some(known) = known.filter(|known| known[..] != path[..1]) {
                    from = self.absolute(module, known, false)?;
                    at = 1;
                } else if !self.is_module(&[module, &path[..1]].concat()) {
                    return None;
                }
            }
        }
        from.extend_from_slice(&path[at..]);
        Some(from)
    }

    /// Splits a path into its longest prefix that is a module, and the rest.
    fn split<'a>(&self, names: &'a [String]) -> (&'a [String], &'a [String]) {
        let known = (0..=names.len()).rev().find(|&len| self.is_module(&names[..len])).unwrap_or(0);
        names.split_at(known)
    }

    /// Returns, for each module, the modules that it names, as written; a module that only passes a name on counts too.
    pub fn written(&self) -> Vec<(Names, Names)> {
        let absolute =
            |(module, path): &(Names, Names)| Some((module.clone(), self.absolute(module, path, true)?));
        self.named.iter().filter_map(absolute).collect()
    }

    /// Returns, for each file, the files that declare what it names.
    pub fn files(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut arrows: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (module, mut names) in self.written() {
            for _ in 0..8 {
                let (place, rest) = self.split(&names);
                let passed = rest.first().and_then(|name| self.brought.get(place)?.get(name));
                let Some(next) = passed.and_then(|path| self.absolute(place, path, false)) else { break };
                names = [&next[..], &rest[1..]].concat();
            }
            let (place, rest) = self.split(&names);
            let from = self.file(&module);
            if let (Some(from), Some(to)) = (from, self.file(place))
                && from != to
                && !rest.is_empty()
                && !place.is_empty()
            {
                arrows.entry(from).or_default().insert(to);
            }
        }
        arrows
    }

    /// Returns the file that a module is in.
    fn file(&self, module: &[String]) -> Option<&Path> {
        (0..=module.len()).rev().find_map(|len| self.files.get(&module[..len])).map(|path| &**path)
    }

    /// Returns the circles of files that name each other, each in order.
    pub fn circles(&self) -> Vec<Vec<&Path>> {
        let arrows = self.files();
        let mut reached: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for &from in arrows.keys() {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(path) = next.pop() {
                next.extend(arrows.get(path).into_iter().flatten().copied().filter(|&to| seen.insert(to)));
            }
            reached.insert(from, seen);
        }
        let mut circles = BTreeSet::new();
        for (path, seen) in &reached {
            let circle: Vec<&Path> = seen
                .iter()
                .copied()
                .filter(|to| reached.get(to).is_some_and(|back| back.contains(path)))
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}
