import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparatorImpl;
import org.apache.hadoop.hbase.ExtendedCell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.fs.HFileSystem;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.util.ChecksumType;

/**
 * HBase's own writer and reader of store files, measured: HFileBench DATA DIRECTORY WARMUPS ROUNDS. The cells are those of the HFile DATA;
 * each combination of encoding and codec is written to DIRECTORY and read again, first without being measured. A line per measurement:
 * write|read ENCODING CODEC NANOSECONDS BYTES-OF-THE-FILE.
 */
public final class HFileBench {
  private static final String[] ENCODINGS = { "NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1" };
  private static final String[] CODECS = { "NONE", "GZ", "SNAPPY", "LZ4", "ZSTD" };

  private final Configuration conf = HBaseConfiguration.create();
  private final FileSystem fs;
  private final List<ExtendedCell> cells = new ArrayList<>();
  private long bytes;

  private HFileBench(String data) throws Exception {
    // Files without checksum files beside them, as HDFS has them.
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    conf.set("fs.defaultFS", "file:///");
    conf.setFloat("hfile.block.cache.size", 0f);
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    fs = new HFileSystem(conf, true);
    read(new Path("file://" + data), cell -> {
      KeyValue copy = KeyValueUtil.copyToNewKeyValue((ExtendedCell) cell);
      copy.setSequenceId(((ExtendedCell) cell).getSequenceId());
      cells.add(copy);
    });
  }

  private interface Taker {
    void take(Cell cell);
  }

  private void read(Path path, Taker taker) throws Exception {
    try (HFile.Reader reader = HFile.createReader(fs, path, CacheConfig.DISABLED, true, conf)) {
      HFileScanner scanner = reader.getScanner(conf, false, false, false);
      for (boolean more = scanner.seekTo(); more; more = scanner.next()) {
        taker.take(scanner.getCell());
      }
    }
  }

  private void write(Path path, String encoding, String codec) throws Exception {
    HFileContext context = new HFileContextBuilder().withBlockSize(65536)
      .withCompression(Compression.Algorithm.valueOf(codec)).withDataBlockEncoding(DataBlockEncoding.valueOf(encoding))
      .withChecksumType(ChecksumType.CRC32C).withHBaseCheckSum(true).withIncludesMvcc(true)
      .withCellComparator(CellComparatorImpl.COMPARATOR).build();
    StoreFileWriter writer = new StoreFileWriter.Builder(conf, CacheConfig.DISABLED, fs).withFilePath(path)
      .withFileContext(context).withBloomType(BloomType.ROW).withMaxKeyCount(cells.size()).build();
    for (ExtendedCell cell : cells) {
      writer.append(cell);
    }
    writer.appendMetadata(1, false);
    writer.close();
  }

  private void measure(Path path, String encoding, String codec, boolean print) throws Exception {
    fs.delete(path, false);
    long start = System.nanoTime();
    write(path, encoding, codec);
    long written = System.nanoTime();
    bytes = 0;
    long[] count = new long[1];
    read(path, cell -> {
      count[0]++;
      bytes += cell.getRowLength() + cell.getQualifierLength() + cell.getValueLength();
    });
    long read = System.nanoTime();
    if (count[0] != cells.size()) {
      throw new IllegalStateException(encoding + " " + codec + ": " + count[0] + " of " + cells.size() + " cells");
    }
    if (print) {
      long length = fs.getFileStatus(path).getLen();
      System.out.println("write " + encoding + " " + codec + " " + (written - start) + " " + length);
      System.out.println("read " + encoding + " " + codec + " " + (read - written) + " " + length);
    }
    fs.delete(path, false);
  }

  public static void main(String[] args) throws Exception {
    HFileBench bench = new HFileBench(args[0]);
    int warmups = Integer.parseInt(args[2]);
    int rounds = warmups + Integer.parseInt(args[3]);
    for (int round = 0; round < rounds; round++) {
      for (String encoding : ENCODINGS) {
        for (String codec : CODECS) {
          bench.measure(new Path("file://" + args[1] + "/hbase.hfile"), encoding, codec, round >= warmups);
        }
      }
    }
  }
}
