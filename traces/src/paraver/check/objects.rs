//! Objects of a trace, and checks of the locations of records.

use std::fmt;

use super::report::Log;
use super::rule::Rule;

/// Task in the header.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) threads: u64,
    /// Number of the node, from 1.
    pub(super) node: u64,
    /// Number of threads of all previous tasks.
    pub(super) first_thread: u64,
}

/// Nodes with their cpus, and applications with their tasks.
#[derive(Debug)]
pub(super) struct Objects {
    /// Last cpu of each node: cpus are numbered over all nodes.
    last_cpus: Vec<u64>,
    applications: Vec<Vec<Task>>,
    threads: u64,
}

/// Name of a thread by application, task and thread; formatted only if shown.
pub(super) struct ThreadName<'a> {
    objects: &'a Objects,
    thread: usize,
}

impl Objects {
    pub(super) fn new(node_cpus: Vec<u64>, mut applications: Vec<Vec<Task>>) -> Self {
        let mut threads = 0_u64;
        for task in applications.iter_mut().flatten() {
            task.first_thread = threads;
            threads = threads.saturating_add(task.threads);
        }
        let mut cpus = 0_u64;
        let last_cpus = node_cpus.into_iter().map(|of_node| {
            cpus = cpus.saturating_add(of_node);
            cpus
        });
        Self { last_cpus: last_cpus.collect(), applications, threads }
    }

    pub(super) fn applications(&self) -> u64 {
        self.applications.len() as u64
    }

    pub(super) fn tasks(&self) -> u64 {
        self.applications.iter().map(|tasks| tasks.len() as u64).sum()
    }

    pub(super) fn threads(&self) -> u64 {
        self.threads
    }

    pub(super) fn nodes(&self) -> u64 {
        self.last_cpus.len() as u64
    }

    pub(super) fn cpus(&self) -> u64 {
        self.last_cpus.last().copied().unwrap_or_default()
    }

    /// Returns the tasks of an application, numbered from 1.
    pub(super) fn tasks_of(&self, application: i128) -> Option<&[Task]> {
        let index = usize::try_from(application.checked_sub(1)?).ok()?;
        self.applications.get(index).map(Vec::as_slice)
    }

    /// Returns the index of the task of each thread, both among all of the trace.
    pub(super) fn ranks_of_threads(&self) -> Vec<u32> {
        let tasks = (0..).zip(self.applications.iter().flatten());
        tasks.flat_map(|(rank, task)| (0..task.threads).map(move |_| rank)).collect()
    }

    /// Returns the number of the node of each task; 1 if there are no nodes.
    pub(super) fn nodes_of_tasks(&self) -> impl Iterator<Item = u64> {
        let tasks = self.applications.iter().flatten();
        tasks.map(|task| if self.last_cpus.is_empty() { 1 } else { task.node })
    }

    /// Returns the name of a thread by its index among all threads.
    pub(super) fn name(&self, thread: usize) -> ThreadName<'_> {
        ThreadName { objects: self, thread }
    }

    /// Checks the location `cpu:application:task:thread`, and reports objects that do not exist.
    /// Returns the index of the thread among all threads. Only a record that `needs_cpu` may not
    /// have cpu 0 where there are nodes.
    pub(super) fn locate(
        &self,
        location: &[i128],
        needs_cpu: bool,
        line: u64,
        log: &mut Log<'_>,
    ) -> Option<usize> {
        let &[cpu, application, task, thread] = location else {
            return None;
        };
        let Some(tasks) = self.tasks_of(application) else {
            let text = format_args!("application {application}; there are {}", self.applications());
            log.add(Rule::ApplicationOutOfRange, line, text);
            return None;
        };
        let index = usize::try_from(task - 1).ok();
        let Some(shape) = index.and_then(|index| tasks.get(index)) else {
            let text = format_args!("task {task}; application {application} has {}", tasks.len());
            log.add(Rule::TaskOutOfRange, line, text);
            return None;
        };
        if !(1..=i128::from(shape.threads)).contains(&thread) {
            let text = format_args!(
                "thread {thread}; task {application}.{task} has {}, numbered from 1",
                shape.threads
            );
            log.add(Rule::ThreadOutOfRange, line, text);
            return None;
        }
        self.check_cpu((cpu, needs_cpu), shape, line, log);
        usize::try_from(i128::from(shape.first_thread) + thread - 1).ok()
    }

    fn check_cpu(&self, (cpu, needs_cpu): (i128, bool), task: &Task, line: u64, log: &mut Log<'_>) {
        let cpus = self.cpus();
        if self.last_cpus.is_empty() {
            if cpu != 0 {
                let text = format_args!("cpu {cpu}; without nodes it must be 0");
                log.add(Rule::CpuWithoutNodes, line, text);
            }
        } else if cpu == 0 {
            if needs_cpu {
                log.add(Rule::NoCpu, line, "cpu 0 although the header declares nodes");
            }
        } else if !(1..=i128::from(cpus)).contains(&cpu) {
            log.add(Rule::CpuOutOfRange, line, format_args!("cpu {cpu}; there are {cpus}"));
        } else if let Some((first, last)) = self.cpus_of(task.node)
            && !(i128::from(first)..=i128::from(last)).contains(&cpu)
        {
            let node = task.node;
            let text = format_args!("cpu {cpu}; node {node} of the task has {first} to {last}");
            log.add(Rule::CpuOfOtherNode, line, text);
        }
    }

    /// Returns the first and the last cpu of a node.
    fn cpus_of(&self, node: u64) -> Option<(u64, u64)> {
        let index = usize::try_from(node.checked_sub(1)?).ok()?;
        let last = *self.last_cpus.get(index)?;
        let before = index.checked_sub(1).map_or(0, |index| self.last_cpus[index]);
        Some((before + 1, last))
    }
}

impl fmt::Display for ThreadName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = self.thread as u64;
        for (tasks, application) in self.objects.applications.iter().zip(1..) {
            for (task, number) in tasks.iter().zip(1..) {
                if (task.first_thread..task.first_thread + task.threads).contains(&thread) {
                    return write!(f, "{application}.{number}.{}", thread - task.first_thread + 1);
                }
            }
        }
        write!(f, "number {thread}")
    }
}
