//! Names the library by the version of its binary interface.

/// Version of the binary interface; raised when a change of `ftlab.h` makes it necessary to recompile programs.
const ABI: u32 = 1;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libftlab.so.{ABI}");
    }
}
