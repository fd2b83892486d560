//! `include/ftlab.h` matches what the source declares; `make header` writes it.

use std::path::Path;
use std::process::Command;

#[test]
fn the_header_is_that_of_the_source() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let sources = ["src/lib.rs", "src/handle.rs"];
    let builder = sources.iter().fold(builder, |builder, source| builder.with_src(here.join(source)));
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = here.join("include/ftlab.h");
    if std::env::var_os("FTLAB_HEADER").is_some_and(|how| how == "write") {
        std::fs::write(&path, &header).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == header, "run `make header`");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ftlab.h");
    let mut command = Command::new("g++");
    command.args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c++"]);
    match command.arg(&header).output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(_) => eprintln!("SKIPPED: g++ is not installed; nobody compiled the header as C++"),
    }
}
