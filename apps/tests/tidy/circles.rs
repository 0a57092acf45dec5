//! Circles of files that import each other, found from the imports and the paths in the code.
//!
//! A name that a module re-exports counts as an import of the file that defines it, so the `mod.rs`
//! of a folder ties nothing together. Tests, and paths in macros, are not read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

use crate::assert_none;
use crate::repository::rust_files;

/// Number of files in the largest circle of each crate; a change may only make it smaller.
const LARGEST: [(&str, usize); 8] = [
    ("apps/src/", 12),
    ("benches/src/", 20),
    ("ibverbs-sim/src/", 22),
    ("lpf-c/src/", 1),
    ("runtime/src/", 14),
    ("talpf/src/", 3),
    ("tampi-shim/src/", 12),
    ("traces/src/", 2),
];

/// Names of a module or of an item in it, from the root of the crate.
type Path = Vec<String>;

/// Imports and paths of one file.
#[derive(Default)]
struct Source {
    module: Path,
    /// Names in scope through imports, with the paths behind them.
    names: HashMap<String, Path>,
    /// Paths of private imports, and paths in the code.
    used: Vec<Path>,
}

impl Source {
    fn new(module: Path, text: &str) -> Self {
        let file = syn::parse_file(text).expect("the crate compiles");
        let mut source = Source { module, ..Source::default() };
        source.visit_file(&file);
        source
    }

    /// Returns the path from the root of the crate of one that is written in this module.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let first = path.first()?;
        let up = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match (first.as_str(), self.names.get(first)) {
            ("crate", _) => (&[][..], &path[1..]),
            ("self", _) => (&self.module[..], &path[1..]),
            ("super", _) => (&self.module[..self.module.len().checked_sub(up)?], &path[up..]),
            (_, Some(import)) => (&import[..], &path[1..]),
            (_, None) => (&self.module[..], path),
        };
        Some([base, rest].concat())
    }

    fn add_import(&mut self, is_private: bool, mut path: Path, tree: &UseTree) {
        let name = match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                return self.add_import(is_private, path, &inner.tree);
            }
            UseTree::Group(group) => {
                let mut add = |tree| self.add_import(is_private, path.clone(), tree);
                return group.items.iter().for_each(&mut add);
            }
            UseTree::Name(name) if name.ident == "self" => path.last().cloned(),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                path.last().cloned()
            }
            UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                Some(rename.rename.to_string())
            }
            UseTree::Glob(_) => None,
        };
        let Some(path) = self.absolute(&path) else {
            return;
        };
        if is_private {
            self.used.push(path.clone());
        }
        self.names.extend(name.map(|name| (name, path)));
    }
}

impl Visit<'_> for Source {
    fn visit_item(&mut self, item: &Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &ItemUse) {
        let is_private = matches!(import.vis, Visibility::Inherited);
        self.add_import(is_private, Vec::new(), &import.tree);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let names: Path = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.used.extend(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns true for `cfg(test)` and conditions that contain it.
fn is_for_tests(attribute: &Attribute) -> bool {
    let tokens = |list: &syn::MetaList| list.tokens.to_string();
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| {
            tokens(list).split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        })
}

/// Returns the module of a file, from the root of its crate.
fn module_of(path: &str) -> Path {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let names = path.split('/').filter(|name| *name != "lib");
    names.map(str::to_owned).collect()
}

/// Files of one crate, by module.
struct Crate {
    sources: BTreeMap<Path, Source>,
}

impl Crate {
    fn new<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let sources = files.map(|(path, text)| {
            let module = module_of(path);
            (module.clone(), Source::new(module, text))
        });
        Crate { sources: sources.collect() }
    }

    /// Returns the module whose file defines the item at `path`, if the crate has it.
    fn defining(&self, path: &[String], depth: usize) -> Option<&Path> {
        let is_module = |length: &usize| self.sources.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(is_module)?;
        let (module, source) = self.sources.get_key_value(&path[..length])?;
        match path.get(length).and_then(|name| source.names.get(name)) {
            Some(behind) if depth > 0 => {
                let behind = [behind, &path[length + 1..]].concat();
                self.defining(&behind, depth - 1)
            }
            _ => Some(module),
        }
    }

    /// Returns the circles, each with the modules in it.
    fn circles(&self) -> Vec<BTreeSet<&Path>> {
        let mut imports = DiGraphMap::<&Path, ()>::new();
        for (module, source) in &self.sources {
            let used = source.used.iter().filter_map(|path| self.defining(path, RE_EXPORTS));
            for other in used.filter(|other| *other != module) {
                imports.add_edge(module, other, ());
            }
        }
        let parts = tarjan_scc(&imports).into_iter().map(BTreeSet::from_iter);
        parts.filter(|part| part.len() > 1).collect()
    }
}

/// Length of the longest chain of re-exports that is followed.
const RE_EXPORTS: usize = 8;

#[test]
fn circles_of_imports_are_no_larger_than_known() {
    let files = rust_files();
    let mut findings = Vec::new();
    for (folder, known) in LARGEST {
        let inside = files
            .iter()
            .filter_map(|file| Some((file.path.strip_prefix(folder)?, file.text.as_str())));
        let sources = inside.filter(|(path, _)| !path.contains("test") && *path != "main.rs");
        let sources = Crate::new(sources);
        let circles = sources.circles();
        let largest = circles.iter().max_by_key(|circle| circle.len());
        let len = largest.map_or(1, BTreeSet::len);
        if len != known {
            let modules = largest.into_iter().flatten().map(|module| module.join("::"));
            let modules = modules.collect::<Vec<_>>().join(", ");
            findings.push(format!("{folder}: {len} files, not {known}: {modules}"));
        }
    }
    assert_none(&findings, "the largest circle of files that import each other");
}

#[test]
fn circles_are_found_through_re_exports_only_where_they_are() {
    let circles = |files: &[(&str, &str)]| {
        let house = Crate::new(files.iter().copied());
        let name = |circle: &BTreeSet<&Path>| {
            circle.iter().map(|module| module.join("::")).collect::<Vec<_>>()
        };
        house.circles().iter().map(name).collect::<Vec<_>>()
    };
    let re_exports = ("a/mod.rs", "mod b; mod c; pub(crate) use self::b::B; pub use self::c::C;");
    let chain = [("lib.rs", "mod a;"), re_exports, ("a/b.rs", ""), ("a/c.rs", "use super::B;")];
    assert!(circles(&chain).is_empty());
    let circle =
        [re_exports, ("a/b.rs", "fn f() { super::C::new() }"), ("a/c.rs", "use crate::a::B;")];
    assert_eq!(circles(&circle), [["a::b", "a::c"]]);
    let in_test = [re_exports, ("a/b.rs", "#[cfg(test)] mod t { use crate::a::C; }"), circle[2]];
    assert!(circles(&in_test).is_empty());
}
