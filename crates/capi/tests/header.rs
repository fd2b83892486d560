//! `include/ftlab.h` is what the source declares; `make header` writes it again.

use std::path::Path;

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
