//! The graph as tasks of peers: GCC OpenMP, rayon, tokio.

use std::sync::Arc;
use std::time::{Duration, Instant};

use talpf_runtime::cores;

use super::countdown::{Countdown, Edges};
use super::work::{Contender, Run, Work};
use super::{Graph, Kernel};
use crate::error::Error;
use crate::peer::{self, Program};

/// GCC's OpenMP tasks with `depend`, in one process per run.
#[derive(Debug)]
pub struct OpenMp {
    program: Program,
    last: Option<Arc<Graph>>,
}

/// Rayon pool whose tasks count down.
#[derive(Debug)]
pub struct Rayon {
    pool: rayon::ThreadPool,
    known: Known,
}

/// Tokio runtime whose tasks count down.
#[derive(Debug)]
pub struct Tokio {
    runtime: tokio::runtime::Runtime,
    known: Known,
}

/// Edges of the graph of the last run.
#[derive(Debug, Default)]
struct Known(Option<(Arc<Graph>, Arc<Edges>)>);

/// Time limit of a run of OpenMP.
const LIMIT: Duration = Duration::from_secs(60);

impl OpenMp {
    /// Compiles the program.
    ///
    /// **Errors**: GCC not installed.
    pub fn compile() -> Result<Self, Error> {
        let options = ["-O3", "-march=native", "-fopenmp"];
        let program = Program::compile("gcc", &options, include_str!("../../peers/metg.c"))?;
        Ok(OpenMp { program, last: None })
    }

    fn output(&self, arguments: &[&str]) -> Result<peer::Output, Error> {
        let mut command = peer::limited(self.program.path(), LIMIT);
        command.args(arguments).env("OMP_NUM_THREADS", cores().to_string());
        peer::run(command.current_dir(self.program.folder()))
    }
}

impl Contender for OpenMp {
    fn name(&self) -> &'static str {
        "openmp"
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        let file = "graph";
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &work.graph)) {
            let written = std::fs::write(self.program.folder().join(file), work.graph.to_text());
            written.map_err(|reason| Error::System { doing: "writing a graph", reason })?;
            self.last = Some(Arc::clone(&work.graph));
        }
        let iterations = work.iterations.to_string();
        let output = self.output(&["run", file, work.kernel.name(), &iterations])?;
        let elapsed = Duration::from_secs_f64(output.value::<f64>("seconds")?.max(0.0));
        Ok(Run { elapsed, checksum: output.value("checksum")? })
    }

    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error> {
        self.output(&["peak", kernel.name()])?.value("peak")
    }
}

impl Known {
    fn edges(&mut self, graph: &Arc<Graph>) -> Arc<Edges> {
        match &self.0 {
            Some((known, edges)) if Arc::ptr_eq(known, graph) => Arc::clone(edges),
            _ => {
                let edges = Arc::new(Edges::new(graph));
                self.0 = Some((Arc::clone(graph), Arc::clone(&edges)));
                edges
            }
        }
    }
}

impl Rayon {
    /// Starts the pool.
    ///
    /// **Errors**: threads refused by the system.
    pub fn start() -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores()).build();
        let refused = |reason| Error::System {
            doing: "starting a rayon pool",
            reason: std::io::Error::other(reason),
        };
        Ok(Rayon { pool: pool.map_err(refused)?, known: Known::default() })
    }
}

impl Contender for Rayon {
    fn name(&self) -> &'static str {
        "rayon"
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        fn go<'a>(scope: &rayon::Scope<'a>, run: &'a Countdown, task: usize) {
            run.run(task, |ready| scope.spawn(move |scope| go(scope, run, ready)));
        }
        let edges = self.known.edges(&work.graph);
        let start = Instant::now();
        let run = Countdown::new(&edges, work);
        self.pool.scope(|scope| {
            for task in run.first() {
                scope.spawn({
                    let run = &run;
                    move |scope| go(scope, run, task)
                });
            }
        });
        Ok(Run { elapsed: start.elapsed(), checksum: run.checksum() })
    }

    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error> {
        Ok(kernel.peak(cores()))
    }
}

impl Tokio {
    /// Starts the runtime.
    ///
    /// **Errors**: threads refused by the system.
    pub fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores()).build();
        let refused = |reason| Error::System { doing: "starting a tokio runtime", reason };
        Ok(Tokio { runtime: runtime.map_err(refused)?, known: Known::default() })
    }
}

impl Contender for Tokio {
    fn name(&self) -> &'static str {
        "tokio"
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        fn spawn(run: Arc<Countdown>, end: Arc<tokio::sync::Notify>, task: usize) {
            tokio::spawn(async move {
                let ready = |ready| spawn(Arc::clone(&run), Arc::clone(&end), ready);
                if run.run(task, ready) {
                    end.notify_one();
                }
            });
        }
        let edges = self.known.edges(&work.graph);
        let end = Arc::new(tokio::sync::Notify::new());
        let start = Instant::now();
        let run = Arc::new(Countdown::new(&edges, work));
        // The creator is a task, since a thread outside the pool sends every task through a shared
        // queue.
        let creator = self.runtime.spawn({
            let (run, end) = (Arc::clone(&run), Arc::clone(&end));
            async move {
                for task in run.first() {
                    spawn(Arc::clone(&run), Arc::clone(&end), task);
                }
                end.notified().await;
            }
        });
        let ended = self.runtime.block_on(creator);
        let elapsed = start.elapsed();
        ended.map_err(|reason| Error::System {
            doing: "running under tokio",
            reason: std::io::Error::other(reason),
        })?;
        Ok(Run { elapsed, checksum: run.checksum() })
    }

    fn peak(&mut self, kernel: Kernel) -> Result<f64, Error> {
        Ok(kernel.peak(cores()))
    }
}
