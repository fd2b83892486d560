//! Prints what a trace holds as JSON: `cargo run -p ftlab-trace --example trace_info -- FILE [FORMAT]`. With
//! `--time` it prints the processor time of reading it instead.

use ftlab_trace::{Options, info, open};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let timed = arguments.iter().any(|argument| argument == "--time");
    let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let Some(path) = names.first() else {
        eprintln!("usage: trace_info FILE [FORMAT] [--time]");
        std::process::exit(2);
    };
    let mut options = Options::default();
    if let Some(format) = names.get(1) {
        options.format.clone_from(format);
    }
    let result = if timed {
        let start = Instant::now();
        open(path, &options).and_then(|mut source| {
            let mut requests = 0u64;
            while source.next()?.is_some() {
                requests += 1;
            }
            let ns = start.elapsed().as_nanos() as f64;
            println!("{path}: {requests} requests, {:.1} ns each", ns / requests as f64);
            Ok(())
        })
    } else {
        info(path, &options).map(|info| {
            println!("{}", serde_json::to_string_pretty(&info).expect("figures are plain"));
        })
    };
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(2);
    }
}
