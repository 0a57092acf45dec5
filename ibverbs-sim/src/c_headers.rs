//! Comparison of numbers of this crate with those that the C compiler finds in headers.

use std::{fs, path::Path, process::Command};

/// A number of this crate, and the expression of C that has it.
pub(crate) type Number = (String, usize);

/// Lists the offsets of the fields of a record, and its size if it ends where that of C does.
macro_rules! record {
    ($numbers:ident, $type:ident $(.$whole:ident)?, $c:literal, $($field:ident $(= $name:literal)?),+) => {
        $(
            let names = [stringify!($field), $($name)?];
            let name = names[names.len() - 1];
            let offset = offset_of!($type, $field);
            $numbers.push((format!("offsetof(struct {}, {name})", $c), offset));
        )+
        $(
            assert_eq!(stringify!($whole), "whole");
            $numbers.push((format!("sizeof(struct {})", $c), size_of::<$type>()));
        )?
    };
}

macro_rules! constants {
    ($numbers:ident, $($constant:ident = $c:literal),+ $(,)?) => {
        $($numbers.push((format!("{}", $c), $constant as usize));)+
    };
}

pub(crate) use {constants, record};

/// Compares numbers with those of the headers of a library, in a folder.
#[track_caller]
pub(crate) fn are_those_of(library: &str, folder: &str, headers: &[String], numbers: &[Number]) {
    if headers.iter().any(|name| !Path::new(folder).join(name).exists()) {
        eprintln!("skipped: the headers of {library} are not installed");
        return;
    }
    let includes: String = headers.iter().map(|name| format!("#include <{name}>\n")).collect();
    let checks: String = numbers
        .iter()
        .map(|(expression, number)| {
            format!("_Static_assert({expression} == {number}ULL, \"another number\");\n")
        })
        .collect();
    let name = format!("ibverbs-sim-{library}-{}", std::process::id());
    let own = std::env::temp_dir().join(name);
    fs::create_dir_all(&own).unwrap();
    let source = own.join("abi.c");
    fs::write(&source, format!("#include <stddef.h>\n{includes}{checks}")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-fsyntax-only", "-w", "-isystem", folder]).arg(&source);
    let compiled = compiler.output();
    fs::remove_dir_all(&own).unwrap();
    match compiled {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
        }
        Err(error) => eprintln!("skipped: there is no C compiler: {error}"),
    }
}
