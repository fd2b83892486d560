//! The file host in one program: its clients' programs, its file system, its page cache.

use ftlab_conformance as common;

mod clients;

mod coop_host;
mod file_host;
mod fio_jobs;
mod flash_cpu;
mod flusher;
mod tenants;
