//! Good inputs, to be changed.

/// Lines of each layout to mutate.
pub const SEEDS: &[(&str, &str)] = &[
    ("csv", "time_ns,op,offset,size\n100,R,4096,512\n200,w,0,1\n250,T,8192,4096\n300,F,,\n"),
    (
        "msr",
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372003061630,usr,1,Write,13,8192,1963\n",
    ),
    ("spc", "0, 20941264, 8192, W, 0.551706\n1,100,3573,r,0.554041,extra\n"),
    (
        "blkparse",
        "  8,16   1  1  0.000000000   697  Q   W 223490 + 8 [k]\n  8,16 0 3 0.000012 697  D  FN [kworker]\nCPU0 (8,16):\n",
    ),
    (
        "fio-iolog",
        "fio version 2 iolog\n/dev/a add\n/dev/a read 4096 512\n/dev/a wait 1500 0\n/dev/b write 0 4096\n",
    ),
    ("mqsim", "1000 0 8 16 1\n3000 1 4096 8 0\n"),
    ("ssdsim", "1000 0 8 16 1\n3000 1 4096 8 0\n"),
    ("disksim", "0.5 0 8 16 1\n1.5 1 8 16 1f\n"),
    ("replayer", "0.5 0 8 16 1\n1.5 0 4096 8 0\n"),
    (
        "biotracer",
        "131072\t8\t4096\t5\t10.5\t10.5001\t10.5002\t10.51\n200\t17\t8704\t1\t10.6\t10.6\t10.6\t10.7\n",
    ),
    (
        "mobile-ebpf",
        "proces,device,rw_flag,sector,size,timestamp\n<...>-1,8,R,29880920,16,159273.83748699998\na,8,FF,0,0,1.5\n",
    ),
    (
        "systor17",
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456752000.02,0.1,R,0,35264577536,32768\n1.03,,,0,0,0\n",
    ),
    ("alicloud", "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,36864,1577808144360813\n"),
    ("tencent", "1538323200,12910952,8,0,1063\n1538323201,6265368,8,1,1064\n"),
    ("notimes", "offset,size,type 507\n4220896,4096,1\n8,8704,0\n"),
    ("sqlitewal", "39949 D read 299008 4096 0.000000000 0 False\n0 C read 1 2 7.39e-05 0 False\n"),
    ("cloudphysics-csv", "version,time,op,size,lbn\n1,5633898,2a,512,10\n1,5633899,28,1024,20\n"),
];

/// Configurations: every kind of value, tables nested and dotted.
pub const TOMLS: &[&str] = &[
    "preset = \"map-plus\"\nseed = 7\n[host]\nscheduler = \"map+\"\ndeadline = \"10ms\"\n[ftl]\nmapping_cache = \"16KiB\"\nover_provisioning = \"7%\"\n",
    "[workload.synthetic]\nrequests = 0x10\nread_sizes = \"4KiB/60:64KiB/40\"\nzipf_theta = 1.1\n[flash]\nchannels = 2\nblocks_per_plane = 64\n",
    "preset = \"coop-fast\"\nworkload.benchmark.kind = \"postmark\"\n[results]\nhistograms = true\n",
];

/// fio's job files: every option that is read.
pub const JOBS: &[&str] = &[
    "[global]\nrw=randrw\nbs=4k,8k\nsize=64m\nrwmixread=70\n[a]\niodepth=4\ndirect=1\nnumjobs=2\n[b]\nfsync=8\nrate=1m,2m\n",
    "[x]\nrw=randwrite\nrandom_distribution=zipf:1.1\nsize=16m\nruntime=2\ntime_based\n; comment\n[y]\nrw=read\nsize=1m\nrandom_distribution=zoned:60/10:30/20:10/70\n",
];

/// Tables whose keys are not a configuration's.
pub const TABLES: &[&str] = &[
    "source = \"x\"\n[config]\npreset = \"vios\"\n[targets.a]\nreads = 3000\nwrites = 2000\nmean_size = \"8KiB\"\nsizes = [4096, '64KiB']\n",
    "title = 'T'\n[axis.x.sets]\na = { \"host.scheduler\" = \"noop\" }\n[[panel]]\nwhere = { x = ['a'] }\ny_range = [0.5, 1e3]\n",
];
