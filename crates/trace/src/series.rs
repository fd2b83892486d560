//! A trace in several files: numbered ones, as a recording with `--rotate` leaves them, with a `*` in the name that
//! stands for the numbers; or the Parquet files of a folder, as Spark, polars and pyarrow write them.

use crate::opened::{decompressed, input_error, reason};
use ftlab_core::workload::SourceError;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

/// Returns the files of a trace, in order: those that a `*` in its name stands for, the Parquet files in a folder, or
/// the one of this name.
///
/// # Errors
/// If no file has such a name, or a numbered one between two others is missing.
pub fn files(path: &str) -> Result<Vec<PathBuf>, SourceError> {
    let whole = Path::new(path);
    if whole.is_dir() {
        let mut found = Vec::new();
        parts(whole, &mut found).map_err(|error| input_error(path, &reason(&error)))?;
        found.sort_by_cached_key(|file| in_order(&file.to_string_lossy()));
        return Ok(if found.is_empty() { vec![whole.into()] } else { found });
    }
    let name = whole.file_name().and_then(|name| name.to_str());
    let Some((before, behind)) = name.and_then(|name| name.split_once('*')).filter(|_| !whole.exists())
    else {
        return Ok(vec![whole.into()]);
    };
    let folder = whole.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if is_parquet(Path::new(name.unwrap_or_default())) {
        let fits = |name: &str| name.starts_with(before) && name[before.len()..].ends_with(behind);
        let entries = fs::read_dir(folder).map_err(|error| input_error(path, &reason(&error)))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| fits(name)).collect();
        names.sort_by_cached_key(|name| in_order(name));
        return match names.is_empty() {
            true => Err(input_error(path, "no file has this name with anything in place of the *")),
            false => Ok(names.into_iter().map(|name| whole.with_file_name(name)).collect()),
        };
    }
    let mut found: Vec<(u64, PathBuf)> = fs::read_dir(folder)
        .map_err(|error| input_error(path, &reason(&error)))?
        .filter_map(|entry| {
            let entry = entry.ok()?.file_name();
            let number = entry.to_str()?.strip_prefix(before)?.strip_suffix(behind)?;
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| number.parse().ok())??;
            Some((number, whole.with_file_name(&entry)))
        })
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(input_error(path, "no file has this name with a number in place of the *"));
    }
    if let Some(pair) = found.windows(2).find(|pair| pair[1].0 != pair[0].0 + 1) {
        let [(before, _), (behind, _)] = pair else { unreachable!("a window of two") };
        let what = if before == behind { "have the same number" } else { "lack what was between them" };
        let names = format!("{} and {}", pair[0].1.display(), pair[1].1.display());
        return Err(input_error(path, &format!("{names} {what}")));
    }
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

fn is_parquet(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "parquet" || extension == "parq")
}

/// Adds the Parquet files in a folder and its folders. Names that begin with `_` or `.` are those of notes about them.
fn parts(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(['_', '.']) {
            continue;
        }
        if path.is_dir() {
            parts(&path, found)?;
        } else {
            found.extend(is_parquet(&path).then_some(path));
        }
    }
    Ok(())
}

/// Returns what sorts names as people number them: 2 before 10.
fn in_order(name: &str) -> (Vec<(u64, char)>, String) {
    let mut key: Vec<(u64, char)> = Vec::new();
    let mut digits = None;
    for letter in name.chars() {
        match letter.to_digit(10) {
            Some(digit) => {
                let number: &mut u64 = digits.get_or_insert(0);
                *number = number.saturating_mul(10).saturating_add(u64::from(digit));
            }
            None => {
                key.extend(digits.take().map(|number| (number, '0')));
                key.push((0, letter));
            }
        }
    }
    key.extend(digits.map(|number| (number, '0')));
    (key, name.to_owned())
}

/// The bytes of several files, one after the other; what all begin with as their first line is read once.
pub(crate) struct Series {
    /// The files that have not been opened.
    rest: IntoIter<PathBuf>,
    current: Box<dyn Read + Send>,
    /// The first line of the first file, with its line feed.
    header: Vec<u8>,
    /// Bytes that were read to look for the header, and are not it.
    looked: io::Cursor<Vec<u8>>,
}

impl Series {
    /// Makes the bytes of a file that is open, and of those that follow it.
    ///
    /// # Errors
    /// The first file's error.
    pub(crate) fn new(mut first: Box<dyn Read + Send>, rest: IntoIter<PathBuf>) -> io::Result<Series> {
        let header = line(&mut first)?;
        Ok(Series { rest, current: first, looked: io::Cursor::new(header.clone()), header })
    }
}

/// Reads a line, or as much as a header may have.
fn line(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    const MOST: usize = 4096;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < MOST && line.last() != Some(&b'\n') && from.read(&mut byte)? > 0 {
        line.push(byte[0]);
    }
    Ok(line)
}

impl Read for Series {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = match self.looked.read(buffer)? {
                0 => self.current.read(buffer)?,
                length => length,
            };
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            let Some(next) = self.rest.next() else { return Ok(0) };
            let named = |error: io::Error| io::Error::other(format!("{}: {error}", next.display()));
            self.current = decompressed(&next).map_err(named)?.1;
            let first = line(&mut self.current).map_err(named)?;
            self.looked = io::Cursor::new(if first == self.header { Vec::new() } else { first });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of whole names, in their order; a missing one, or two of the same, is an error.
    #[test]
    fn files_are_found_in_the_order_of_their_numbers() {
        let folder = std::env::temp_dir().join(format!("ftlab-series-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in
            ["a.9.csv", "a.10.csv", "a.x.csv", "a.11.csv.part", "b.1.csv", "c.1", "c.3", "d.1", "d.01"]
        {
            fs::write(folder.join(name), "").unwrap();
        }
        let names = |pattern: &str| {
            let found = files(folder.join(pattern).to_str().unwrap()).map_err(|error| error.to_string())?;
            Ok::<_, String>(found.iter().map(|file| file.strip_prefix(&folder).unwrap().to_owned()).collect())
        };
        let expected: Vec<PathBuf> = vec!["a.9.csv".into(), "a.10.csv".into()];
        assert_eq!(names("a.*.csv"), Ok(expected));
        assert_eq!(names("b.1.csv"), Ok(vec!["b.1.csv".into()]));
        assert!(names("c.*").unwrap_err().contains("lack what was between"));
        assert!(names("d.*").unwrap_err().contains("the same number"));
        assert!(names("e.*").unwrap_err().contains("in place of the *"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
