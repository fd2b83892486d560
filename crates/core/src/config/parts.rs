//! Parts that a key names: a list with one line for each part ([`registry`]), and what the parts do ([`dispatch`]).

/// A method of a trait, with a body or without.
macro_rules! method {
    ({ $($head:tt)* }) => { $($head)*; };
    ({ $($head:tt)* } $body:block) => { $($head)* $body };
}

/// Marks the path that calls it as rarely taken, so that its test comes first and is not merged into a jump by a table.
#[cold]
pub(crate) fn rare() {}

/// A part that is in no frame: see [`registry`].
pub type Itself<T> = T;

/// Makes the enum of the parts that a key names, and their lists, from one line per part: `Variant =
/// module::Type;`. A module declares `NAME`, `DOC` and `Keys`. Where parts are in folders, each folder has a
/// block of lines, which states with `in` the frame of its parts, and with `over` the modules below them.
///
/// Two macros evaluate an expression for whichever part is meant: `with_part!` for the part in a value of the enum,
/// `with_kind!` with the type that a name stands for and a function that wraps a part of that type in the enum. Both
/// evaluate `else` for a part from outside.
macro_rules! registry {
    (
        $(#[$about:meta])*
        pub enum $all:ident or $any:ident, for $key:literal;
        $first:ident = $first_module:ident::$first_type:ident;
        $($variant:ident = $module:ident::$type:ident;)*
    ) => {
        mod $first_module;
        $(mod $module;)*

        // The first part, which most runs have, has a test of its own, which is cheaper than a jump by a table.
        macro_rules! with_part {
            ($part:expr, $name:ident => $body:expr, else $else:expr) => {
                match $part {
                    $all::$first($name) => $body,
                    $($all::$variant($name) => {
                        $crate::config::parts::rare();
                        $body
                    })*
                    $all::Outside($name) => {
                        $crate::config::parts::rare();
                        $else
                    }
                }
            };
        }

        $crate::config::parts::registry! {
            @list [$(#[$about])*] $all $key [Outside(Box<dyn $any>)]
            $first $first_module [$first_module::$first_type] $($variant $module [$module::$type])*
        }
    };
    (
        $(#[$about:meta])*
        pub enum $all:ident, for $key:literal, in frames $($($path:ident)::+),+;
        $(
            $(#[$folder_about:meta])*
            pub mod $folder:ident in $frame:ident {
                $($variant:ident = $module:ident::$type:ident;)*
            } $(over { $($below:tt)* })?
        )*
    ) => {
        $(
            $(#[$folder_about])*
            #[doc = concat!("Parts that `", $key, "` names.")]
            pub mod $folder {
                $($($below)*)?
                $(pub mod $module;)*
            }
            use $folder::{$($module),*};
        )*
        $(use $($path)::+;)+

        macro_rules! with_part {
            ($part:expr, $name:ident => $body:expr) => {
                match $part { $($($all::$variant($name) => $body,)*)* }
            };
        }

        $crate::config::parts::registry! {
            @list [$(#[$about])*] $all $key [] $($($variant $module [$frame<$module::$type>])*)*
        }
    };
    (
        @list [$($about:tt)*] $all:ident $key:literal [$($outside:tt)*]
        $($variant:ident $module:ident [$($type:tt)*])*
    ) => {
        $($about)*
        #[allow(missing_docs, private_interfaces)]
        #[repr(u8)] // a separate byte holds the variant, so that testing for one is cheap
        pub enum $all { $($variant($($type)*),)* $($outside)* }

        macro_rules! with_kind {
            ($named:expr, $kind:ident, $of:ident => $body:expr) => {
                with_kind!($named, $kind, $of => $body, other => panic!("{}: {other} is not registered", $key))
            };
            ($named:expr, $kind:ident, $of:ident => $body:expr, $other:ident => $else:expr) => {
                match $named {
                    $($module::NAME => {
                        type $kind = $($type)*;
                        #[allow(unused_variables)]
                        let $of = $all::$variant;
                        $body
                    })*
                    $other => $else,
                }
            };
        }

        #[doc = concat!("Names for `", $key, "`.")]
        pub fn choices() -> Vec<$crate::config::Choice> {
            vec![$($crate::config::Choice { name: $module::NAME, doc: $module::DOC }),*]
        }

        $crate::section! {
            /// Keys of the individual parts.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Own {
                $(#[doc = "Keys of the one of this name."] $module: $module::Keys;)*
            }
        }

        /// Collects, as ignored, the keys of the parts that are not `chosen`; `why` returns the reason, given a part's
        /// name.
        pub(crate) fn own_ignored(chosen: &[&str], why: &dyn Fn(&str) -> String, found: &mut $crate::config::Ignored) {
            $(found.section::<$module::Keys>(chosen.contains(&$module::NAME), &[], &why($module::NAME));)*
        }
    };
}

/// From one declaration of what the parts of a registry do, makes the trait of a part, with its constructor; a trait
/// of its methods alone, for parts from outside; the enum's methods, which pass each call on; and the functions that
/// register a part from outside. An argument of type `@Trait` is a reference to whatever implements that trait.
macro_rules! dispatch {
    (
        $(#[$about:meta])*
        pub trait $part:ident: [$($bound:tt)+] $(, NEEDS: $needs:ty $(= $nothing:expr)?)?;
        for $all:ident or $any:ident $(($clone:ident by $copy:ident))?, which $($key:literal),+ may name;
        $(#[$made:meta])*
        fn new($($from:ident: $source:ty),*);
        $(
            $(#[$doc:meta])*
            fn $name:ident($this:ident: $receiver:ty $(, $argument:ident: $(@ $face:ident)? $($kind:ty)?)*) $(-> $result:ty)? $(= $default:block)?;
        )*
    ) => {
        $(#[$about])*
        #[allow(unused_attributes, unused_variables)]
        #[allow(clippy::inline_fn_without_body, clippy::needless_arbitrary_self_type)]
        pub trait $part: Sized {
            $(
                /// What the part needs.
                const NEEDS: $needs $(= $nothing)?;
            )?
            $(#[$made])*
            fn new($($from: $source),*) -> Self;
            $($crate::config::parts::method! {
                { $(#[$doc])* fn $name($this: $receiver $(, $argument: $(&(impl $face + ?Sized))? $($kind)?)*) $(-> $result)? }
                $($default)?
            })*
        }

        #[doc = concat!("Any, by its methods alone: each means what it means in [`", stringify!($part), "`].")]
        #[allow(missing_docs, unused_variables, clippy::needless_arbitrary_self_type)]
        pub trait $any: $($bound)+ {
            $($crate::config::parts::method! {
                { fn $name($this: $receiver $(, $argument: $(&dyn $face)? $($kind)?)*) $(-> $result)? } $($default)?
            })*
            $(fn $copy(&self) -> Box<dyn $any>;)?
        }

        #[allow(clippy::needless_arbitrary_self_type)]
        impl<P: $part + $($bound)+ $(+ $clone)? + 'static> $any for P {
            $(fn $name($this: $receiver $(, $argument: $(&dyn $face)? $($kind)?)*) $(-> $result)? {
                $part::$name($this $(, $argument)*)
            })*
            $(fn $copy(&self) -> Box<dyn $any> { Box::new($clone::clone(self)) })?
        }

        $(impl $clone for Box<dyn $any> {
            fn clone(&self) -> Self {
                (**self).$copy()
            }
        })?

        const KEYS: &[&str] = &[$($key),+];

        /// A function that makes a part from outside.
        type Make = dyn Fn($($source),*) -> Box<dyn $any> + Send + Sync;

        /// A part from outside the registry.
        struct Outside {
            $(needs: $needs,)?
            make: Box<Make>,
        }

        #[doc = concat!("Lets ", $("`", $key, "` ",)+ "name the one of this type.")]
        pub fn register<P: $part + $($bound)+ $(+ $clone)? + 'static>(name: &str) {
            register_made(name, $(std::convert::identity::<$needs>(P::NEEDS),)? |$($from),*| Box::new(P::new($($from),*)));
        }

        #[doc = concat!("Lets ", $("`", $key, "` ",)+ "name what `make` makes, anew for each simulation.")]
        pub fn register_made(
            name: &str,
            $(needs: $needs,)?
            make: impl Fn($($source),*) -> Box<dyn $any> + Send + Sync + 'static,
        ) {
            let make = Box::new(make);
            $crate::config::outside::add(KEYS, name, Outside { $(needs: std::convert::identity::<$needs>(needs),)? make });
        }

        $(
            /// Returns what the part of this name needs.
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn needs(name: &str) -> $needs {
                with_kind!(name, Part, of => <Part as $part>::NEEDS,
                    other => $crate::config::outside::maker::<Outside>(KEYS[0], other).needs)
            }
        )?

        #[allow(clippy::needless_arbitrary_self_type)]
        impl $all {
            #[doc = concat!("The one of this name: see [`", stringify!($part), "::new`].")]
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn new(name: &str, $($from: $source),*) -> $all {
                with_kind!(name, Part, of => of(<Part as $part>::new($($from),*)), other => {
                    let outside = $crate::config::outside::maker::<Outside>(KEYS[0], other);
                    $all::Outside((outside.make)($($from),*))
                })
            }

            $(
                $(#[$doc])*
                pub fn $name($this: $receiver $(, $argument: $(&impl $face)? $($kind)?)*) $(-> $result)? {
                    with_part!($this, part => $part::$name(part $(, $argument)*), else part.$name($($argument),*))
                }
            )*
        }
    };
}

pub(crate) use {dispatch, method, registry};
