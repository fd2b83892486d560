//! The layouts of traces, by name.

use crate::config::Choice;

/// Passes every text layout to a macro: the module of its reader in `ftlab-trace`, the reader's type, its
/// name in `workload.format`, and what its lines hold. To add a layout, add one file there and one line here.
#[macro_export]
macro_rules! trace_formats {
    ($list:ident) => {
        $list! {
            csv { Csv = "csv", "ftlab's own: the header names time_ns|time_us|time_s, op, offset, size"; }
            msr { Msr = "msr", "MSR Cambridge: Timestamp,Host,Disk,Type,Offset,Size,ResponseTime"; }
            spc { Spc = "spc", "SPC: ASU,LBA,Size,Opcode,Timestamp"; }
            blkparse { Blkparse = "blkparse", "text output of blkparse"; }
            fio { Fio = "fio-iolog", "fio's I/O log, version 2 or 3"; }
            columns {
                Mqsim = "mqsim", "MQSim: arrival_ns device lba_sectors size_sectors type (1 read)";
                Ssdsim = "ssdsim", "SSDSim: arrival_ns device lba_sectors size_sectors op (1 read)";
                Disksim = "disksim", "DiskSim ASCII: arrival_ms device blkno sectors flags (bit 0 read)";
                Replayer = "replayer", "arrival_ms device offset_bytes size_bytes op (1 read)";
            }
            biotracer { Biotracer = "biotracer", "BIOtracer: sector, sectors, bytes, flags, and four time stamps"; }
            mobile_ebpf { MobileEbpf = "mobile-ebpf", "MobileBlockIOTraces (Pixel 6a): proces,device,rw_flag,sector,size,timestamp"; }
            systor17 { Systor17 = "systor17", "SYSTOR 2017: Timestamp,Response,IOType,LUN,Offset,Size"; }
            alicloud { Alicloud = "alicloud", "Alibaba Cloud: device_id,opcode,offset,length,timestamp_us"; }
            tencent { Tencent = "tencent", "Tencent CBS: timestamp,offset,size (sectors),IOType,VolumeID"; }
            k5cloud { K5cloud = "k5cloud", "FUJITSU K5 cloud: ID,Timestamp (s),R|W,offset,length (bytes)"; }
            fiu { Fiu = "fiu", "FIU: time_ns pid process lba_sectors size_sectors W|R major minor md5"; }
            notimes { Notimes = "notimes", "header, then offset (sectors), size (bytes), type (1 write); closed replay only"; }
            sqlitewal { Sqlitewal = "sqlitewal", "pid D|C op offset bytes time"; }
            cloudphysics { Cloudphysics = "cloudphysics-csv", "version,time (s),op (28 read, 2a write),size (bytes),lbn (sectors)"; }
            io_tracer { IoTracer = "io-tracer", "cacheMon's io-tracer: timestamp,operation,pid,tid,command,sector,size,latency_ms,..."; }
            bpftrace { Bpftrace = "bpftrace", "bpftrace on a block tracepoint: nsecs rwbs bytes sector nr_sector"; }
            thesios { Thesios = "thesios", "Google's Thesios: filename,file_offset,application,...,op_type,...,start_time,..."; }
            baleen { Baleen = "baleen", "Meta's Baleen: block_id io_offset io_size op_time op_name ... user_name ..."; }
        }
    };
}

/// Passes every binary layout to a macro; each of them has a file of its own.
#[macro_export]
macro_rules! binary_trace_formats {
    ($list:ident) => {
        $list! {
            blktrace { Blktrace = "blktrace", "binary output of blktrace"; }
            oracle_general { OracleGeneral = "oracle-general", "libCacheSim's oracleGeneral for block traces (every request is a read)"; }
            oracle_general_op { OracleGeneralOp = "oracle-general-op", "libCacheSim's oracleGeneralOpNS for block traces: with operations and namespaces"; }
            lcs { Lcs = "lcs", "libCacheSim's lcs for block traces, versions 1 to 8"; }
            vscsi { Vscsi = "vscsi", "vscsiStats of VMware, versions 1 and 2 (CloudPhysics)"; }
        }
    };
}

macro_rules! choices {
    ($($module:ident { $($type:ident = $name:literal, $doc:literal;)+ })*) => {
        const TEXTS: &[Choice] = &[$($(Choice { name: $name, doc: $doc }),+),*];
    };
}
trace_formats!(choices);

macro_rules! binary_choices {
    ($($module:ident { $type:ident = $name:literal, $doc:literal; })*) => {
        const BINARIES: &[Choice] = &[$(Choice { name: $name, doc: $doc }),*];
    };
}
binary_trace_formats!(binary_choices);

const AUTO: Choice = Choice {
    name: "auto",
    doc: "recognise the layout (but never tell ssdsim, mqsim, disksim and replayer apart)",
};
const PARQUET: Choice = Choice { name: "parquet", doc: "ftlab's own: ts_ns, op, offset, size, flags" };

/// Returns the names for `workload.format`; ftlab's own layouts come one after the other.
pub fn formats() -> Vec<Choice> {
    [&[AUTO, TEXTS[0], PARQUET], &TEXTS[1..], BINARIES].concat()
}
