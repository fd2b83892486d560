//! Structs as their source declares them to serde: names in the JSON, types, documentation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use syn::{Attribute, Expr, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// What a field holds.
#[derive(Clone, Debug)]
pub enum Kind {
    Int,
    Float,
    Text,
    /// One of these words.
    Choice(Vec<String>),
    /// The keys of a configuration.
    Settings,
    List(Box<Kind>),
    /// An object whose values are of one kind, and whose names are not declared.
    Map(Box<Kind>),
    Optional(Box<Kind>),
    Struct(String),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub doc: String,
    pub kind: Kind,
    /// Whether some results lack the field.
    pub sometimes: bool,
}

#[derive(Clone, Debug)]
pub struct Struct {
    pub name: String,
    pub doc: String,
    pub fields: Vec<Field>,
}

/// The declarations of some files.
#[derive(Default)]
pub struct Declared {
    /// The structs that were read, by their name in the source; a generic struct once for each form in which it is
    /// used.
    pub structs: BTreeMap<String, Struct>,
    items: BTreeMap<String, Item>,
}

/// Returns the documentation as one line.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(text) => match &text.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Returns the options of `#[serde(...)]`; an option without a value has an empty string.
fn serde(attributes: &[Attribute]) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let read = attribute.parse_nested_meta(|meta| {
            let value = meta.value().and_then(|value| value.parse::<syn::LitStr>());
            said.insert(
                meta.path.require_ident()?.to_string(),
                value.map_or_else(|_| String::new(), |text| text.value()),
            );
            Ok(())
        });
        read.expect("options of serde");
    }
    said
}

/// Returns a name as `rename` and `rename_all` make it.
fn renamed(name: &str, own: &BTreeMap<String, String>, all: &BTreeMap<String, String>) -> String {
    let words = |separator: char| {
        let mut text = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() && !text.is_empty() {
                text.push(separator);
            }
            text.extend(letter.to_lowercase());
        }
        text
    };
    match (own.get("rename"), all.get("rename_all").map(String::as_str)) {
        (Some(name), _) => name.clone(),
        (_, None) => name.into(),
        (_, Some("SCREAMING_SNAKE_CASE")) => name.to_uppercase(),
        (_, Some("lowercase")) => name.to_lowercase(),
        (_, Some("kebab-case")) => words('-'),
        (_, Some(other)) => panic!("rename_all = {other:?}: say here how"),
    }
}

/// Returns the types between the angle brackets.
fn arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(list) = arguments else { return Vec::new() };
    let types = list.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    });
    types.collect()
}

impl Declared {
    /// Reads all files in these folders.
    pub fn read(folders: &[PathBuf]) -> Declared {
        let mut declared = Declared::default();
        for file in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for item in syn::parse_file(&source).unwrap().items {
                let name = match &item {
                    Item::Struct(item) => item.ident.to_string(),
                    Item::Enum(item) => item.ident.to_string(),
                    Item::Type(item) => item.ident.to_string(),
                    _ => continue,
                };
                declared.items.insert(name, item);
            }
        }
        declared
    }

    /// Returns a struct and all structs that its fields hold; each comes before the structs that it is the first to
    /// hold.
    pub fn below(&mut self, name: &str) -> Vec<Struct> {
        self.enter(name, name, &[]);
        let (mut found, mut at) = (vec![name.to_owned()], 0);
        while let Some(name) = found.get(at).cloned() {
            at += 1;
            let mut place = at;
            for inner in self.structs[&name].fields.iter().filter_map(|field| held(&field.kind)) {
                if !found.contains(&inner) {
                    found.insert(place, inner);
                    place += 1;
                }
            }
        }
        found.iter().map(|name| self.structs[name].clone()).collect()
    }

    /// Reads the struct `item` with its type arguments, under the name `name`.
    fn enter(&mut self, item: &str, name: &str, given: &[Type]) {
        if self.structs.contains_key(name) {
            return;
        }
        let Some(Item::Struct(item)) = self.items.get(item).cloned() else { panic!("no struct {item}") };
        let parameters = item.generics.type_params().map(|parameter| parameter.ident.to_string());
        let given: BTreeMap<String, Type> = parameters.zip(given.iter().cloned()).collect();
        let all = serde(&item.attrs);
        let mut fields = Vec::new();
        for field in &item.fields {
            let said = serde(&field.attrs);
            let kind = |declared: &mut Declared| declared.kind(&field.ty, &given);
            if said.contains_key("flatten") {
                let Kind::Struct(inner) = kind(self) else { panic!("only a struct can be flattened") };
                fields.append(&mut self.structs.remove(&inner).unwrap().fields);
            } else if !said.contains_key("skip") {
                let sometimes = said.contains_key("skip_serializing_if");
                let kind = match kind(self) {
                    Kind::Optional(inner) if sometimes => *inner,
                    kind => kind,
                };
                let name = renamed(&field.ident.as_ref().expect("a name").to_string(), &said, &all);
                fields.push(Field { name, doc: doc(&field.attrs), kind, sometimes });
            }
        }
        self.structs.insert(name.into(), Struct { name: name.into(), doc: doc(&item.attrs), fields });
    }

    fn kind(&mut self, kind: &Type, given: &BTreeMap<String, Type>) -> Kind {
        let last = match kind {
            Type::Reference(reference) => return self.kind(&reference.elem, given),
            // A tuple is a list in the JSON.
            Type::Tuple(tuple) => return Kind::List(Box::new(self.kind(&tuple.elems[0], given))),
            Type::Path(path) => path.path.segments.last().unwrap(),
            _ => panic!("say here what this type of a field is in Python"),
        };
        let (name, inner) = (last.ident.to_string(), arguments(&last.arguments));
        let mut boxed = |at: usize| Box::new(self.kind(inner[at], given));
        match &*name {
            "u8" | "u32" | "u64" => Kind::Int,
            "f64" => Kind::Float,
            "str" | "String" => Kind::Text,
            "Value" => Kind::Settings,
            "Option" => Kind::Optional(boxed(0)),
            "Vec" => Kind::List(boxed(0)),
            "BTreeMap" => Kind::Map(boxed(1)),
            "ByCause" => Kind::Map(boxed(0)),
            // `Percentiles` is serialized in its own way, as a map from percentiles to nanoseconds.
            "Percentiles" => Kind::Map(Box::new(Kind::Int)),
            name => match (given.get(name), self.items.get(name).cloned()) {
                (Some(argument), _) => self.kind(&argument.clone(), &BTreeMap::new()),
                (_, Some(Item::Type(alias))) => self.kind(&alias.ty, given),
                (_, Some(Item::Enum(item))) => {
                    let all = serde(&item.attrs);
                    let words = item.variants.iter();
                    let word = |variant: &syn::Variant| {
                        renamed(&variant.ident.to_string(), &serde(&variant.attrs), &all)
                    };
                    Kind::Choice(words.map(word).collect())
                }
                (_, Some(_)) => {
                    let given: Vec<Type> = inner.into_iter().cloned().collect();
                    let whole = name.to_owned() + if given.is_empty() { "" } else { self.word(&given[0]) };
                    self.enter(name, &whole, &given);
                    Kind::Struct(whole)
                }
                (None, None) => panic!("{name}: say here what it is in Python"),
            },
        }
    }

    /// Returns what an argument adds to the name of a generic struct.
    fn word(&mut self, argument: &Type) -> &'static str {
        match self.kind(argument, &BTreeMap::new()) {
            Kind::Int => "Counts",
            Kind::Optional(_) => "Means",
            other => panic!("{other:?}: say here how its struct is called"),
        }
    }
}

/// Returns the name of the struct that a kind contains, if there is one.
fn held(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Struct(name) => Some(name.clone()),
        Kind::List(inner) | Kind::Map(inner) | Kind::Optional(inner) => held(inner),
        _ => None,
    }
}
