//! The server: who listens, who waits for due events, and how everything ends.

use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Prepared};

use crate::awake::{Awake, Wait};
use crate::clock::Clock;
use crate::control::{self, Describe};
use crate::engine::{Engine, Live};
use crate::fuse::Mounted;
use crate::interference::Serving;
use crate::listen::{take_connections, take_questions};
use crate::media::Stored;
use crate::nbd::Export;
use crate::pace::Time;
use crate::recording::{Recording, RecordingStatus};
use crate::shared::Shared;
use crate::socket::{Listener, knock};
use crate::{Address, LiveError};

/// How a device is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where NBD clients connect.
    pub nbd: Vec<Address>,
    /// Directory in which the device appears as a file.
    pub fuse: Option<PathBuf>,
    /// The control socket.
    pub control: Option<PathBuf>,
    /// The address that Prometheus queries.
    pub metrics: Option<SocketAddr>,
    /// How time passes.
    pub time: Time,
    /// How threads wait.
    pub wait: Wait,
    /// Whether writes are refused.
    pub read_only: bool,
    /// File for a trace of all requests.
    pub record: Option<PathBuf>,
    /// Bytes after which the trace goes on in the next numbered file.
    pub rotate: Option<u64>,
    /// The description of the export.
    pub description: String,
    /// Number of streams that clients can choose by the name of their export.
    pub streams: u8,
    /// The keys of the device with their values, which a saved state has.
    pub identity: Identity,
    /// Whether the latencies of each program that asks are kept.
    pub trace_pids: bool,
    /// How long a client may stay silent within a message, or leave its replies unread.
    pub patience: Duration,
}

/// A live device.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    /// Addresses of the control socket and of the metrics.
    questions: Vec<Address>,
    listeners: Vec<JoinHandle<()>>,
    timers: Vec<JoinHandle<()>>,
    mounted: Option<Mounted>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Server {
    /// Starts to serve a device, which was prepared for these checked settings or was kept in a file. `describe` makes
    /// the answers of the control socket.
    ///
    /// # Errors
    /// [`LiveError::User`] if an address or the recording is at fault.
    pub fn start(
        settings: &Settings,
        device: (Prepared, Option<Stored>),
        options: &Options,
        describe: Arc<Describe>,
    ) -> Result<Server, LiveError> {
        let bound: Vec<Listener> = options.nbd.iter().map(Listener::bind).collect::<Result<_, _>>()?;
        let questions = options.control.clone().map(Address::Unix).into_iter();
        let questions = questions.chain(options.metrics.map(Address::Tcp));
        let asked: Vec<Listener> = questions.map(|at| Listener::bind(&at)).collect::<Result<_, _>>()?;
        let questions = asked.iter().map(|listener| listener.address.clone()).collect();
        let page = settings.ftl.logical_page_bytes;
        let export = Export {
            size: settings.user_bytes(),
            read_only: options.read_only,
            preferred: page.next_power_of_two().clamp(512, crate::nbd::MAX_PAYLOAD),
            description: options.description.clone(),
            streams: options.streams,
        };
        let engine = engine(settings, device, options)?;
        let awake = Arc::new(Awake::new(options.wait));
        let shared = Arc::new(Shared {
            engine: Mutex::new(engine),
            clock: Clock::new(awake.clone()),
            awake: awake.clone(),
            serving: Serving::new(),
            asked_to_stop: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            failed: Mutex::new(None),
            export,
            device: (settings.clone(), options.identity.clone()),
            patience: options.patience,
            clients: Mutex::default(),
            connections: AtomicU64::new(0),
        });
        let mount = |directory| Mounted::mount(directory, shared.clone(), describe.clone());
        let mounted = options.fuse.as_deref().map(mount).transpose()?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let addresses = bound.iter().map(|listener| listener.address.clone()).collect();
        let listen = |listener: Listener| {
            let (shared, connections) = (shared.clone(), connections.clone());
            spawn(move || take_connections(&listener, &shared, &connections))
        };
        let mut listeners: Vec<JoinHandle<()>> = bound.into_iter().map(listen).collect();
        listeners.extend(asked.into_iter().map(|listener| {
            let (shared, describe) = (shared.clone(), describe.clone());
            spawn(move || take_questions(&listener, &shared, &*describe))
        }));
        let mut timers = Vec::new();
        if matches!(options.time, Time::Real { .. }) {
            timers = shared.awake.start();
            let shared = shared.clone();
            timers.push(spawn(move || shared.serving.during(|| shared.keep_time())));
        }
        Ok(Server { shared, addresses, questions, listeners, timers, mounted, connections })
    }

    /// Returns the addresses where the server listens.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the address that Prometheus queries.
    pub fn metrics(&self) -> Option<&Address> {
        self.questions.iter().find(|address| matches!(address, Address::Tcp(_)))
    }

    /// Whether a command has asked the server to stop.
    pub fn asked_to_stop(&self) -> bool {
        self.shared.asked_to_stop.load(Ordering::Relaxed)
    }

    /// Checks that the device is still running.
    ///
    /// # Errors
    /// What ended the device: the simulation's error, or a fault.
    pub fn look(&self) -> Result<(), LiveError> {
        if let Some(error) = self.shared.failed().take() {
            return Err(error.into());
        }
        if self.shared.engine.is_poisoned() { Err(LiveError::Broken) } else { Ok(()) }
    }

    /// Cuts the power in the `after`-th program or erase from now, or immediately if `after` is 0.
    ///
    /// # Errors
    /// [`LiveError::User`] if the flash is only in memory.
    pub fn cut(&self, after: u64, seed: u64) -> Result<(), LiveError> {
        control::cut(&self.shared, after, seed).map_err(LiveError::User)
    }

    /// Cuts the power when the `after`-th write, trim or flush from now comes, or immediately if `after` is 0.
    ///
    /// # Errors
    /// [`LiveError::User`] if the flash is only in memory.
    pub fn cut_at_request(&self, after: u64, seed: u64) -> Result<(), LiveError> {
        self.shared.engine().cut_at_request(after, seed).map_err(LiveError::User)
    }

    /// Returns how far the recording has come, if there is one.
    pub fn recording(&self) -> Option<RecordingStatus> {
        self.shared.engine.lock().ok().and_then(|engine| engine.recording())
    }

    /// Returns the number of clients served so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Stops cleanly: requests in flight complete, the recording ends, and flash in a file is left with its
    /// checkpoint. Returns the result, which says under `media` and `recording` whether closing these files failed.
    ///
    /// # Errors
    /// The simulation's error, or a fault.
    pub fn stop(mut self) -> Result<(Report, Live), LiveError> {
        // The threads of a mounted device end without a word.
        self.shared.serving.waited();
        self.close();
        self.look()?;
        let mut engine = self.shared.engine.lock().map_err(|_| LiveError::Broken)?;
        engine.drain()?;
        // A loop device may still hold the file open and wait for these answers.
        let mut answered = Vec::new();
        engine.take_answered(&mut answered);
        answered.iter().for_each(|sink| sink.kick());
        engine.end_recording();
        let ((report, mut live), served) = (engine.report(), engine.served());
        live.interference = Some(self.shared.serving.interference(served));
        let error = engine.end_media()?;
        if let Some(media) = &mut live.media {
            media.error = error;
        }
        Ok((report, live))
    }

    /// Accepts no more clients, and waits for the clients' requests and for all threads.
    fn close(&mut self) {
        // The clock runs until requests have completed.
        if self.shared.closing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.mounted.take().into_iter().for_each(Mounted::unmount);
        self.addresses.iter().chain(&self.questions).for_each(knock);
        join(&mut self.listeners);
        self.shared.clients().iter().for_each(|stream| stream.shut(Shutdown::Read));
        join(&mut self.connections.lock().expect("no panic while threads are listed"));
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.clock.wake();
        self.shared.awake.end();
        join(&mut self.timers);
    }
}

/// Makes the engine of a device, with its recording.
fn engine(
    settings: &Settings,
    device: (Prepared, Option<Stored>),
    options: &Options,
) -> Result<Engine, LiveError> {
    let record = |path| Recording::create(path, options.streams > 0, options.rotate);
    let recording = options.record.as_deref().map(record).transpose()?;
    let mut engine = Engine::new(settings, device, (options.time, options.read_only), recording);
    if options.trace_pids {
        engine.trace_programs();
    }
    Ok(engine)
}

/// Waits for threads to end. A thread that failed has left the engine poisoned, which [`Server::look`] notices.
fn join(threads: &mut Vec<JoinHandle<()>>) {
    threads.drain(..).for_each(|thread| _ = thread.join());
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}
