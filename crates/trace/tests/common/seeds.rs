//! Valid inputs, for campaigns to mutate.

/// Configurations with every kind of value, and with nested and dotted tables.
pub const TOMLS: &[&str] = &[
    "preset = \"map-plus\"\nseed = 7\n[host]\nscheduler = \"map+\"\ndeadline = \"10ms\"\n[ftl]\nmapping_cache = \"16KiB\"\nover_provisioning = \"7%\"\n",
    "[workload.synthetic]\nrequests = 0x10\nread_sizes = \"4KiB/60:64KiB/40\"\nzipf_theta = 1.1\n[flash]\nchannels = 2\nblocks_per_plane = 64\n",
    "preset = \"coop-fast\"\nworkload.benchmark.kind = \"postmark\"\n[results]\nhistograms = true\n",
];

/// Job files of fio with every option that is read.
pub const JOBS: &[&str] = &[
    "[global]\nrw=randrw\nbs=4k,8k\nsize=64m\nrwmixread=70\n[a]\niodepth=4\ndirect=1\nnumjobs=2\n[b]\nfsync=8\nrate=1m,2m\n",
    "[x]\nrw=randwrite\nrandom_distribution=zipf:1.1\nsize=16m\nruntime=2\ntime_based\n; comment\n[y]\nrw=read\nsize=1m\nrandom_distribution=zoned:60/10:30/20:10/70\n",
];

/// TOML tables whose keys are not those of a configuration.
pub const TABLES: &[&str] = &[
    "source = \"x\"\n[config]\npreset = \"vios\"\n[targets.a]\nreads = 3000\nwrites = 2000\nmean_size = \"8KiB\"\nsizes = [4096, '64KiB']\n",
    "title = 'T'\n[axis.x.sets]\na = { \"host.scheduler\" = \"noop\" }\n[[panel]]\nwhere = { x = ['a'] }\ny_range = [0.5, 1e3]\n",
];
