// Reads and sends typed answers: the message of a version, by ProtoJSON, beside the Struct of the calls.

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import headlessforms.generated.every_type.EveryTypeAnswers;
import headlessforms.v1.CreateSubmissionRequest;
import headlessforms.v1.GetSubmissionRequest;
import headlessforms.v1.SubmissionsServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import java.util.HexFormat;

public final class Typed {
  public static void main(String[] args) throws Exception {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(env("GRPC_TARGET")).usePlaintext().build();
    Metadata key = new Metadata();
    key.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + env("API_KEY"));
    var submissions = MetadataUtils.attachHeaders(SubmissionsServiceGrpc.newBlockingStub(channel), key);
    JsonFormat.Printer printer = JsonFormat.printer().omittingInsignificantWhitespace();

    var stored =
        submissions.getSubmission(GetSubmissionRequest.newBuilder().setSubmissionId(env("SUBMISSION_ID")).build());
    EveryTypeAnswers.Builder answers = EveryTypeAnswers.newBuilder();
    JsonFormat.parser().merge(printer.print(stored.getSubmission().getAnswers()), answers);
    System.out.println("read " + printer.print(answers));
    System.out.printf(
        "whole %d %d %d %s%n",
        answers.getWhole(), answers.getRating(), answers.getScale(), answers.getFirstName());

    String[] uploads = env("UPLOAD_IDS").split(",");
    answers.setFile(EveryTypeAnswers.File.newBuilder().setUploadId(uploads[0]));
    answers.clearFiles().addFiles(EveryTypeAnswers.File.newBuilder().setUploadId(uploads[1]));
    Struct.Builder struct = Struct.newBuilder();
    JsonFormat.parser().merge(printer.print(answers), struct);
    var request = CreateSubmissionRequest.newBuilder().setFormId(env("FORM_ID")).setAnswers(struct).build();
    System.out.println("sent " + submissions.createSubmission(request).getSubmissionId());

    var newer = EveryTypeAnswers.parseFrom(HexFormat.of().parseHex(env("NEWER")));
    System.out.println("kept " + HexFormat.of().formatHex(newer.toByteArray()));
    try {
      JsonFormat.parser().merge(env("NEWER_JSON"), EveryTypeAnswers.newBuilder());
      System.out.println("taken");
    } catch (InvalidProtocolBufferException expected) {
      System.out.println("refused");
    }
    EveryTypeAnswers.Builder ignoring = EveryTypeAnswers.newBuilder();
    JsonFormat.parser().ignoringUnknownFields().merge(env("NEWER_JSON"), ignoring);
    System.out.println("ignored " + printer.print(ignoring));
    channel.shutdownNow();
  }

  private static String env(String name) {
    return System.getenv(name);
  }
}
