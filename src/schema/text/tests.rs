use super::*;
use crate::schema::{BloomType, Compression, DataBlockEncoding, Durability, FOREVER, KeepDeletedCells};

/// Bytes that are not plain ASCII letters and digits as `%XX`.
struct Percent;

impl Percent {
    fn spell(key: &[u8]) -> String {
        key.iter()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(*b).to_string() } else { format!("%{b:02X}") })
            .collect()
    }

    fn parse(text: &str) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first == b'%' {
                let (digits, after) = rest.split_at_checked(2)?;
                out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = after;
            } else {
                out.push(*first);
            }
        }
        Some(out.into())
    }
}

impl KeySpelling for Percent {
    fn spell_row(&self, row: &[u8]) -> String {
        Percent::spell(row)
    }
    fn parse_row(&self, text: &str) -> Option<Bytes> {
        Percent::parse(text)
    }
    fn spell_family(&self, family: &[u8]) -> String {
        Percent::spell(family)
    }
    fn parse_family(&self, text: &str) -> Option<Bytes> {
        Percent::parse(text)
    }
    fn spell_qualifier(&self, qualifier: &[u8]) -> String {
        Percent::spell(qualifier)
    }
    fn parse_qualifier(&self, text: &str) -> Option<Bytes> {
        Percent::parse(text)
    }
}

fn read(text: &str) -> TableText {
    parse_table(text, &Percent).unwrap()
}

fn complaint(text: &str) -> String {
    parse_table(text, &Percent).unwrap_err().to_string()
}

#[test]
fn a_default_table_shows_every_attribute() {
    let text = describe_table(&TableDescriptor::with_family("cf"), &[], &Percent);
    let expected = [
        "[table]\nMAX_FILESIZE = \"10GB\"\n",
        "MEMSTORE_FLUSHSIZE = \"128MB\"\n",
        "COMPACTION_ENABLED = true\n",
        "SPLIT_ENABLED = true\n",
        "READONLY = false\n",
        "DURABILITY = \"USE_DEFAULT\"\n",
        "SPLIT_POLICY = \"SteppingSplitPolicy\"\n",
        "SPLITS = []\n",
        "[family.cf]\nVERSIONS = 1\n",
        "MIN_VERSIONS = 0\n",
        "TTL = \"FOREVER\"\n",
        "KEEP_DELETED_CELLS = \"FALSE\"\n",
        "BLOOMFILTER = \"ROW\"\n",
        "BLOCKSIZE = \"64KB\"\n",
        "COMPRESSION = \"NONE\"\n",
        "DATA_BLOCK_ENCODING = \"NONE\"\n",
        "BLOCKCACHE = true\n",
        "IN_MEMORY = false\n",
        "REPLICATION_SCOPE = 0\n",
        "MOB_THRESHOLD = \"100KB\"\n",
    ];
    for line in expected {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(!text.contains("metadata"));
    assert_eq!(read(&text).descriptor, TableDescriptor::with_family("cf"));
}

#[test]
fn everything_that_is_shown_reads_back_the_same() {
    let family = ColumnFamilyDescriptor {
        versions: 5,
        min_versions: 2,
        ttl_seconds: 90_061,
        keep_deleted_cells: KeepDeletedCells::Ttl,
        bloom: BloomType::RowPrefixFixedLength(3),
        block_size: 8_192,
        compression: Compression::Zstd,
        data_block_encoding: DataBlockEncoding::FastDiff,
        block_cache: false,
        in_memory: true,
        new_version_behavior: true,
        metadata: [("PREFETCH_BLOCKS_ON_OPEN", "true"), ("owner of it", "a \"b\"\n\u{e9}\\")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    let table = TableDescriptor {
        max_file_size: Some(5 << 30),
        memstore_flush_size: Some(1_048_577),
        compaction_disabled: true,
        split_disabled: true,
        read_only: true,
        durability: Durability::FsyncWal,
        metadata: [("SPLIT_POLICY", "DisabledRegionSplitPolicy"), ("x.y", "7")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..TableDescriptor::with_family("a b")
    }
    .family(&b"\xff"[..], family);
    let splits = [Bytes::from_static(b"001"), Bytes::from_static(b"00\x00")];
    let text = describe_table(&table, &splits, &Percent);
    let again = read(&text);
    assert_eq!(again.descriptor, table, "{text}");
    assert_eq!(again.splits, Some(vec![splits[1].clone(), splits[0].clone()]));
    assert_eq!(describe_table(&again.descriptor, &splits, &Percent), text);
}

#[test]
fn the_hidden_family_is_not_shown() {
    let table = TableDescriptor::with_family("cf").family(ROW_ATTRIBUTES_FAMILY, ColumnFamilyDescriptor::default());
    assert!(!describe_table(&table, &[], &Percent).contains("attributes"));
}

#[test]
fn what_is_missing_is_at_its_default() {
    let text = read("family.cf.TTL = \"7 DAYS\"\n");
    let family = &text.descriptor.families[&b"cf"[..]];
    assert_eq!((family.ttl_seconds, family.versions), (604_800, 1));
    assert_eq!(text.splits, None);
    assert_eq!(read("[family.cf]\nTTL = 2147483647").descriptor.families[&b"cf"[..]].ttl_seconds, FOREVER);
}

#[test]
fn complaints_name_the_line() {
    let cases = [
        ("[table]\nMAX_FILESIZE = \"1MB\"\n[family.cf]\n", "line 2: MAX_FILESIZE takes a size from 2MB"),
        ("[table]\n[family.cf]\nVERSION = 3\n", "line 3: a family has no VERSION; it has: VERSIONS"),
        ("[family.cf]\nVERSIONS = 0\n", "line 2: VERSIONS takes a whole number from 1"),
        ("[family.cf]\nVERSIONS = \"many\"\n", "line 2: VERSIONS takes"),
        ("[family.cf]\nVERSIONS = 1\nMIN_VERSIONS = 2\n", "line 3: MIN_VERSIONS 2 is more than VERSIONS 1"),
        ("[family.cf]\n\nTTL = 0\n", "line 3: TTL takes a time"),
        ("[family.cf]\nTTL = 1.5\n", "line 2: TTL takes a number, true, false or a text in quotes, not a TOML float"),
        ("[family.cf]\nBLOCKSIZE = 1000\n", "line 2: BLOCKSIZE takes a size from 1KB to 16MB"),
        ("[family.cf]\nCOMPRESSION = \"LZO\"\n", "line 2: COMPRESSION takes one of NONE GZ SNAPPY LZ4 ZSTD"),
        ("[family.cf]\nCOMPRESSION = \"BZIP2\"\n", "line 2: COMPRESSION takes one of NONE GZ SNAPPY LZ4 ZSTD"),
        ("[family.cf]\nBLOOMFILTER = \"ROWPREFIX_FIXED_LENGTH\"\n", "line 2: BLOOMFILTER ROWPREFIX_FIXED_LENGTH needs"),
        ("[family.cf]\n\"RowPrefixBloomFilter.prefix_length\" = 2\n", "line 2: RowPrefixBloomFilter.prefix_length has"),
        ("[family.\"a:b\"]\n", "line 1: the byte ':' is not legal"),
        ("[family.\"%\"]\n", "line 1: % spells no family"),
        ("[table]\nSPLITS = [\"a\",\n\"\"]\n[family.cf]\n", "line 3: \"\" spells no row key"),
        ("[table]\nSPLITS = [\"a\", \"a\"]\n[family.cf]\n", "line 2: SPLITS names a key twice"),
        ("[table]\nSPLITS = \"a\"\n[family.cf]\n", "line 2: SPLITS takes a list"),
        ("[tabel]\n", "line 1: there is no tabel"),
        ("[table]\n", "line 2: a table needs at least one"),
        ("table = 1\n", "line 1: table is a section"),
        ("[family.cf]\nVERSIONS = 1\nVERSIONS = 2\n", "line 3: duplicate key"),
        ("[family.cf]\nVERSIONS = \n", "line 2: "),
        ("[family.cf.metadata]\nIN_MEMORY_COMPACTION = \"x\"\n", "line 2: IN_MEMORY_COMPACTION is an attribute"),
        (
            "[family.cf]\nCOMPRESSION_COMPACT = \"LZMA\"\n",
            "line 2: COMPRESSION_COMPACT takes one of NONE GZ SNAPPY LZ4 ZSTD, not \"LZMA\": HBase has that codec",
        ),
        (
            "[family.cf]\nINDEX_BLOCK_ENCODING = \"PREFIX_TREE\"\n",
            "line 2: INDEX_BLOCK_ENCODING takes one of NONE, not",
        ),
        ("[family.cf]\nENCRYPTION = \"AES\"\n", "line 2: ENCRYPTION is not taken: nothing is encrypted"),
        ("[table]\ncoprocessor$1 = \"x\"\n", "line 2: "),
        ("[table]\n\"coprocessor$1\" = \"x\"\n", "line 2: coprocessor$1 is not taken: no coprocessors run here"),
        ("[family.cf]\nCACHE_DATA_ON_WRITE = 1\n", "line 2: CACHE_DATA_ON_WRITE takes true or false"),
        ("[family.cf]\nPREFETCH_BLOCKS_ON_OPEN = \"maybe\"\n", "line 2: PREFETCH_BLOCKS_ON_OPEN takes true or false"),
        ("[family.cf]\nREPLICATION_SCOPE = 2\n", "line 2: REPLICATION_SCOPE takes a whole number from 0 to 1"),
        ("[family.cf]\nDFS_REPLICATION = -1\n", "line 2: DFS_REPLICATION takes a whole number from 0"),
        ("[family.cf]\nSTORAGE_POLICY = \"LUKEWARM\"\n", "line 2: STORAGE_POLICY takes one of HOT"),
        ("[family.cf]\nIN_MEMORY_COMPACTION = \"SOME\"\n", "line 2: IN_MEMORY_COMPACTION takes one of NONE BASIC"),
        ("[family.cf]\nTTL = \"5 SECONDS (6 SECONDS)\"\n", "line 2: TTL takes a time"),
        ("[table]\nMEMSTORE_FLUSHSIZE = \"1KB\"\n[family.cf]\n", "line 2: MEMSTORE_FLUSHSIZE takes a size from 1MB"),
        ("[table]\nDURABILITY = \"PERHAPS\"\n[family.cf]\n", "line 2: DURABILITY takes one of USE_DEFAULT"),
        ("[table]\nREGION_REPLICATION = 2\n[family.cf]\n", "line 2: REGION_REPLICATION takes"),
        ("[table]\nMERGE_ENABLED = \"\"\n[family.cf]\n", "line 2: MERGE_ENABLED takes true or false"),
        (
            "[table]\nSPLIT_POLICY = \"BusyRegionSplitPolicy\"\n[family.cf]\n",
            "line 2: SPLIT_POLICY takes one of Stepping",
        ),
        (
            "[table]\n\nSPLIT_POLICY = \"KeyPrefixRegionSplitPolicy\"\n[family.cf]\n",
            "line 3: this SPLIT_POLICY needs \"KeyPrefixRegionSplitPolicy.prefix_length\"",
        ),
        (
            "[table]\n\"DelimitedKeyPrefixRegionSplitPolicy.delimiter\" = \"_\"\n[family.cf]\n",
            "line 2: DelimitedKeyPrefixRegionSplitPolicy.delimiter has a meaning only with its SPLIT_POLICY",
        ),
        (
            "[family.cf]\n[family.cf.types]\nage = \"integer\"\n",
            "line 3: there is no type integer: base64 bigdecimal bool",
        ),
        ("[family.cf.types]\n\"%\" = \"int\"\n", "line 2: % spells no qualifier"),
        ("[family.cf.types]\nage = 1.5\n", "line 2: age takes"),
        ("[family.cf]\ntypes = 1\n", "line 2: types is a section"),
        (
            "[family.cf.metadata]\n\"cellfs.type.age\" = \"int\"\n",
            "line 2: a column's type goes to [family.NAME.types]",
        ),
        ("[table]\nSNAPSHOT_EVERY = \"often\"\n[family.cf]\n", "line 2: SNAPSHOT_EVERY takes a time"),
    ];
    for (text, expected) in cases {
        let said = complaint(text);
        assert!(said.starts_with(expected), "{text:?} gave {said:?}, not {expected:?}");
    }
}

#[test]
fn namespaces_round_trip() {
    let plain = NamespaceDescriptor::default();
    assert_eq!(describe_namespace(&plain), "[namespace]\nMAXTABLES = \"UNLIMITED\"\nMAXREGIONS = \"UNLIMITED\"\n");
    let full = NamespaceDescriptor {
        max_tables: Some(5),
        max_regions: None,
        metadata: [("owner", "team"), ("x.y", "1")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    };
    for descriptor in [plain, full] {
        assert_eq!(parse_namespace(&describe_namespace(&descriptor)).unwrap(), descriptor);
    }
    assert_eq!(parse_namespace("").unwrap(), NamespaceDescriptor::default());
    for (text, line) in [("[namespace]\nMAXTABLE = 1\n", 2), ("[namespace]\n\nMAXTABLES = 0\n", 3), ("[table]\n", 1)] {
        let said = parse_namespace(text).unwrap_err().to_string();
        assert!(said.starts_with(&format!("line {line}: ")), "{said}");
    }
}

#[test]
fn codecs_of_compactions_follow_compression_until_they_are_set() {
    let text = describe_table(&read("[family.cf]\nCOMPRESSION = \"GZ\"\n").descriptor, &[], &Percent);
    assert!(text.contains("\n# COMPRESSION_COMPACT_MAJOR = \"GZ\"\n# COMPRESSION_COMPACT_MINOR = \"GZ\"\n"), "{text}");
    let again = read(&text.replace("COMPRESSION = \"GZ\"", "COMPRESSION = \"ZSTD\"")).descriptor;
    assert_eq!(again.families[&b"cf"[..]].compaction_compression(true), Compression::Zstd);
    let text = describe_table(&read("[family.cf]\nCOMPRESSION_COMPACT_MAJOR = \"none\"\n").descriptor, &[], &Percent);
    assert!(text.contains("\nCOMPRESSION_COMPACT_MAJOR = \"NONE\"\n"), "{text}");
}

#[test]
fn types_of_columns_travel_with_the_text() {
    let text = "[family.cf.types]\nage = \"int\"\n\"%FF\" = \"ob-numeric-desc\"\n\"\" = \"string\"\n[family.cf.metadata]\nx = \"y\"\n";
    let table = read(text).descriptor;
    let shown = describe_table(&table, &[], &Percent);
    let section = "\n[family.cf.types]\n\"\" = \"string\"\nage = \"int\"\n\"%FF\" = \"ob-numeric-desc\"\n";
    assert!(shown.contains(&format!("{section}\n[family.cf.metadata]\nx = \"y\"\n")), "{shown}");
    assert_eq!(read(&shown).descriptor, table);
    assert_eq!(table.column_types().get(b"cf", b"age").map(crate::types::ColumnType::name), Some("int"));
}

#[test]
fn the_docs_have_every_attribute() {
    let docs = include_str!("../../../docs/schema.md");
    let families = FAMILY.iter().map(|attribute| attribute.name).chain(FAMILY_STORED.iter().map(|stored| stored.name));
    let tables = TABLE.iter().map(|attribute| attribute.name).chain(TABLE_STORED.iter().map(|stored| stored.name));
    for (section, names) in [("## `[table]`", tables.collect::<Vec<_>>()), ("## `[family.NAME]`", families.collect())] {
        let rest = &docs[docs.find(section).unwrap() + 3..];
        let section_text = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
        for name in names {
            let lines = section_text.lines().filter(|line| line.starts_with(&format!("| {} |", key(name)))).count();
            assert_eq!(lines, 1, "{name} has {lines} lines under {section}");
        }
    }
}
