//! Configurations that come with ftlab, to start from.

/// A configuration with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name, for `ftlab run NAME` and `preset = "NAME"`.
    pub name: &'static str,
    /// One line that says what the preset models, with its source.
    pub doc: &'static str,
    /// The file itself, with its comments.
    pub text: &'static str,
}

/// The presets; to add one, add an entry with its name, its file's first comment and its file.
const PRESETS: &[Preset] = &[
    Preset {
        name: "map-plus",
        doc: "MAP+ (Ji et al., TCAD 2018): one eMMC chip, DFTL, 16 KiB mapping cache",
        text: include_str!("../presets/map-plus.toml"),
    },
    Preset {
        name: "msftl",
        doc: "MSFTL (Kim and Lee, ICSOFT 2020): 4 chips on 2 channels, 128 GiB, mappings flushed in segments of 1 KiB",
        text: include_str!("../presets/msftl.toml"),
    },
    Preset {
        name: "vios",
        doc: "VIOS (Cui et al., NPC 2016): 64 chips on 8 channels, 128 GiB, blocks of different speed",
        text: include_str!("../presets/vios.toml"),
    },
    Preset {
        name: "coop-bast",
        doc: "COOP (Shim et al., TC 2014): 512 MiB OneNAND, BAST, 5 % log blocks",
        text: include_str!("../presets/coop-bast.toml"),
    },
    Preset {
        name: "coop-fast",
        doc: "COOP (Shim et al., TC 2014): 512 MiB OneNAND, FAST, 5 % log blocks",
        text: include_str!("../presets/coop-fast.toml"),
    },
    Preset {
        name: "crash",
        doc: "A device small enough to lose power ten thousand times: four chips, 4.5 MiB, DFTL",
        text: include_str!("../presets/crash.toml"),
    },
    Preset {
        name: "nvme-980-pro",
        doc: "Samsung 980 PRO 1 TB (client TLC, PCIe 4), fitted to random reads of 4 KiB: 40 lanes on 8 channels",
        text: include_str!("../presets/nvme-980-pro.toml"),
    },
    Preset {
        name: "nvme-zn540",
        doc: "Western Digital ZN540 1 TB (TLC), as a conventional drive: 32 lanes on 8 channels, fitted to reads and writes",
        text: include_str!("../presets/nvme-zn540.toml"),
    },
    Preset {
        name: "nvme-970-pro",
        doc: "Samsung 970 PRO, as NVMeVirt models it: 16 LUNs of MLC on 8 channels, 1 MiB write buffer",
        text: include_str!("../presets/nvme-970-pro.toml"),
    },
    Preset {
        name: "nvme-qlc",
        doc: "Crucial P1 1 TB (client QLC, PCIe 3), fitted to its maker's figures and a published fill: 8 dies on 4 channels",
        text: include_str!("../presets/nvme-qlc.toml"),
    },
    Preset {
        name: "ufs-3.1",
        doc: "Samsung eUFS 3.1 512 GB (TLC), fitted to its maker's figures: 8 dies on 2 channels, SLC cache",
        text: include_str!("../presets/ufs-3.1.toml"),
    },
    Preset {
        name: "emmc-5.1",
        doc: "Samsung eMMC 5.1 64 GB, fitted to its maker's figures: 4 dies of MLC on 1 channel",
        text: include_str!("../presets/emmc-5.1.toml"),
    },
];

/// Returns every preset, in the order in which `ftlab presets` shows them.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// Returns the preset of this name.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Makes the message `no preset is called "map-pls"; did you mean "map-plus"?`, and a list of the names.
pub(crate) fn unknown(name: &str) -> (String, String) {
    let names = || PRESETS.iter().map(|preset| preset.name);
    let meant = crate::suggest::nearest(name, names());
    let hint = meant.map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"));
    let shown = crate::error::clean(name, 60);
    (
        format!("no preset is called \"{shown}\"{hint}"),
        format!("presets: {}", names().collect::<Vec<_>>().join(", ")),
    )
}
