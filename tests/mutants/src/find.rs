//! Places that can be mutated.

use std::ops::Range;

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ReturnType, Signature, Stmt, Type, UnOp};

/// The form of a mutant in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Another expression in place of this one.
    Expression,
    /// A condition that can be negated.
    Negated,
    /// A statement that can be left out.
    Statement,
    /// A return at the beginning of a body.
    Body,
}

/// A place, and what may replace it: as a description, and as code.
pub struct Edit {
    pub range: Range<usize>,
    pub shape: Shape,
    pub function: String,
    pub mutants: Vec<(String, String)>,
}

/// Returns all places of a module.
///
/// # Errors
/// If it is not Rust.
pub fn edits(text: &str) -> syn::Result<Vec<Edit>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, within: Vec::new(), edits: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.edits)
}

struct Finder<'a> {
    text: &'a str,
    /// The enclosing types, modules and functions.
    within: Vec<String>,
    edits: Vec<Edit>,
}

/// Whether an item belongs only to tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text == "test" || text == "cfg (test)"
    })
}

/// Returns the replacements of an operator with two operands, by its text.
fn other_operators(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) | BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitAnd(_) | BinOp::BitXor(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) | BinOp::MulAssign(_) => &["+="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitAndAssign(_) | BinOp::BitXorAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

/// Returns what a function may return at once instead, by its type.
fn other_values(output: &ReturnType) -> Vec<&'static str> {
    let ReturnType::Type(_, of) = output else { return vec!["()"] };
    let Type::Path(path) = of.as_ref() else { return Vec::new() };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    match last.ident.to_string().as_str() {
        "bool" => vec!["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => vec!["0"],
        "f64" => vec!["0.0"],
        "Option" => vec!["None"],
        "Result" => vec!["Ok(Default::default())"],
        "Vec" | "String" => vec!["Default::default()"],
        _ => Vec::new(),
    }
}

/// Whether a condition is a pattern, or begins with one.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}

impl Finder<'_> {
    fn of(&self, node: &impl Spanned) -> Range<usize> {
        node.span().byte_range()
    }

    /// Returns a node's text on one line, cut if it gets long.
    fn words(&self, range: Range<usize>) -> String {
        let line = self.text[range].split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(60) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line,
        }
    }

    fn add(&mut self, range: Range<usize>, shape: Shape, mutants: Vec<(String, String)>) {
        if !mutants.is_empty() && !range.is_empty() | (shape == Shape::Body) {
            self.edits.push(Edit { range, shape, function: self.within.join("::"), mutants });
        }
    }

    fn negate(&mut self, condition: &Expr, word: &str) {
        // Comparisons and negations have their own mutants.
        let own = match condition {
            Expr::Binary(both) => !matches!(both.op, BinOp::And(_) | BinOp::Or(_)),
            Expr::Unary(_) | Expr::Lit(_) => true,
            other => has_let(other),
        };
        if !own && !has_let(condition) {
            let range = self.of(condition);
            let what = format!("{word} {} turned round", self.words(range.clone()));
            self.add(range, Shape::Negated, vec![(what, String::new())]);
        }
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() {
            return;
        }
        self.within.push(signature.ident.to_string());
        if !block.stmts.is_empty() {
            let at = self.of(block).start + 1;
            let body = &self.text[at..self.of(block).end - 1];
            let mut values = other_values(&signature.output);
            values.retain(|value| body.trim() != *value);
            let mutants = values.iter().map(|value| (format!("returns {value} at once"), value.to_string()));
            self.add(at..at, Shape::Body, mutants.collect());
        }
        self.visit_block(block);
        self.within.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.within.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let told = of.is_some_and(|of| of.ident == "Debug" || of.ident == "Display");
        // Tests do not check the words of messages.
        if is_test(&item.attrs) || told {
            return;
        }
        let own = match item.self_ty.as_ref() {
            Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.within.push(own.unwrap_or_else(|| "impl".into()));
        visit::visit_item_impl(self, item);
        self.within.pop();
    }

    // Constants cannot be switched; patterns and types are not expressions.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_path_arguments(&mut self, _: &'ast syn::PathArguments) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement
            && let Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) | Expr::Try(_) = expression
        {
            let range = self.of(statement);
            let what = format!("without {}", self.words(range.clone()));
            self.add(range, Shape::Statement, vec![(what, String::new())]);
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.negate(&branch.cond, "if");
        visit::visit_expr_if(self, branch);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.negate(guard, "guard");
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let [range, left, right] = [self.of(both), self.of(&both.left), self.of(&both.right)];
        let chain = matches!(both.op, BinOp::And(_) | BinOp::Or(_));
        if !(chain && (has_let(&both.left) || has_let(&both.right))) {
            let mutants = other_operators(&both.op).iter().map(|other| {
                let what = format!("{other} in {}", self.words(range.clone()));
                let [left, right] = [&self.text[left.clone()], &self.text[right.clone()]];
                // Only a place can be assigned to.
                let code = match other.ends_with('=') && !["==", "!=", "<=", ">="].contains(other) {
                    true => format!("{left} {other} {right}"),
                    false => format!("({left}) {other} ({right})"),
                };
                (what, code)
            });
            let mutants = mutants.collect();
            self.add(range, Shape::Expression, mutants);
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_unary(&mut self, one: &'ast syn::ExprUnary) {
        if matches!(one.op, UnOp::Not(_)) {
            let range = self.of(one);
            let what = format!("no ! in {}", self.words(range.clone()));
            let code = self.text[self.of(&one.expr)].to_string();
            self.add(range, Shape::Expression, vec![(what, code)]);
        }
        visit::visit_expr_unary(self, one);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let other = match call.method.to_string().as_str() {
            "min" if call.args.len() == 1 => "max",
            "max" if call.args.len() == 1 => "min",
            _ => "",
        };
        if !other.is_empty() {
            let [range, name] = [self.of(call), self.of(&call.method)];
            let what = format!("{other} in {}", self.words(range.clone()));
            let code =
                format!("{}{other}{}", &self.text[range.start..name.start], &self.text[name.end..range.end]);
            self.add(range, Shape::Expression, vec![(what, code)]);
        }
        visit::visit_expr_method_call(self, call);
    }
}
