// A form's whole life by gRPC: made, activated, answered, read, and its webhook checked.

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.rpc.Status;
import com.sun.net.httpserver.HttpServer;
import headlessforms.v1.*;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Main {
  private static final String SECRET = "a secret of sixteen";

  public static void main(String[] args) throws Exception {
    String target = System.getenv().getOrDefault("GRPC_TARGET", "localhost:8081");
    ManagedChannel channel = ManagedChannelBuilder.forTarget(target).usePlaintext().build();
    Metadata headers = new Metadata();
    headers.put(
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + System.getenv("API_KEY"));
    var key = MetadataUtils.newAttachHeadersInterceptor(headers);
    var forms = FormsServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var submissions = SubmissionsServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var sessions = SessionsServiceGrpc.newBlockingStub(channel).withInterceptors(key);
    var webhooks = WebhooksServiceGrpc.newBlockingStub(channel).withInterceptors(key);

    var definition =
        FormDefinition.newBuilder()
            .setName("Contact")
            .setSlug("contact")
            .addFields(
                FormField.newBuilder()
                    .setId("email")
                    .setType(FormFieldType.FORM_FIELD_TYPE_EMAIL)
                    .setRequired(true))
            .addFields(
                FormField.newBuilder()
                    .setId("note")
                    .setType(FormFieldType.FORM_FIELD_TYPE_TEXTAREA)
                    .setMaxLength(100))
            .setDelivery(DeliveryTarget.newBuilder().setEmail(EmailDelivery.getDefaultInstance()));
    var made = forms.createForm(CreateFormRequest.newBuilder().setDefinition(definition).build());
    String formId = made.getForm().getId();
    forms.activateForm(
        ActivateFormRequest.newBuilder()
            .setFormId(formId)
            .setActivationToken(made.getActivationToken())
            .setEmail("owner@example.com")
            .build());
    System.out.println("activated " + formId);

    var received = new ArrayBlockingQueue<String[]>(10);
    HttpServer receiver = startReceiver(received);
    webhooks.createWebhook(
        CreateWebhookRequest.newBuilder()
            .setUrl("http://127.0.0.1:" + receiver.getAddress().getPort() + "/")
            .addEvents(WebhookEvent.WEBHOOK_EVENT_SUBMISSION_CREATED)
            .setSecret(SECRET)
            .setFormId(formId)
            .build());

    var submit = CreateSubmissionRequest.newBuilder().setFormId(formId);
    var submitted = submissions.createSubmission(submit.setAnswers(answers("email", "ada@example.com")).build());
    System.out.println("submitted " + submitted.getSubmissionId());
    try {
      submissions.createSubmission(submit.setAnswers(answers("email", "ada", "phone", "1")).build());
    } catch (StatusRuntimeException refused) {
      for (Violation violation : failureOf(refused).getViolationsList()) {
        System.out.println("refused " + violation.getPath() + ": " + violation.getCode());
      }
    }

    var page = submissions.listSubmissions(ListSubmissionsRequest.newBuilder().setFormId(formId).build());
    for (Submission each : page.getSubmissionsList()) {
      System.out.println("listed " + each.getAnswers().getFieldsOrThrow("email").getStringValue());
    }

    var opened = sessions.createSession(CreateSessionRequest.newBuilder().setFormId(formId).build());
    var ended =
        sessions.submitSession(
            SubmitSessionRequest.newBuilder()
                .setSessionId(opened.getSession().getId())
                .setAnswers(answers("email", "bob@example.com"))
                .build());
    System.out.println("session " + ended.getSession().getStatus());

    var export =
        submissions.exportSubmissions(
            ExportSubmissionsRequest.newBuilder()
                .setFormId(formId)
                .setFormat(ExportFormat.EXPORT_FORMAT_NDJSON)
                .build());
    var file = new ByteArrayOutputStream();
    while (export.hasNext()) export.next().getData().writeTo(file);
    System.out.println("exported " + file.toString(StandardCharsets.UTF_8).lines().count() + " lines");

    String[] hit = received.poll(30, TimeUnit.SECONDS);
    System.out.println("webhook signature " + (isSigned(hit[0], hit[1]) ? "valid" : "INVALID"));
    receiver.stop(0);
    channel.shutdownNow();
  }

  /** Field ids and texts, in turn. */
  private static Struct answers(String... pairs) {
    Struct.Builder answers = Struct.newBuilder();
    for (int at = 0; at < pairs.length; at += 2) {
      answers.putFields(pairs[at], Value.newBuilder().setStringValue(pairs[at + 1]).build());
    }
    return answers.build();
  }

  /** The typed detail of a refused call. */
  private static Failure failureOf(StatusRuntimeException error) throws InvalidProtocolBufferException {
    Status status = StatusProto.fromThrowable(error);
    for (Any detail : status.getDetailsList()) {
      if (detail.is(Failure.class)) return detail.unpack(Failure.class);
    }
    return Failure.getDefaultInstance();
  }

  private static HttpServer startReceiver(ArrayBlockingQueue<String[]> received) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext(
        "/",
        exchange -> {
          String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
          received.add(new String[] {exchange.getRequestHeaders().getFirst("X-Service-Signature"), body});
          exchange.sendResponseHeaders(204, -1);
          exchange.close();
        });
    server.start();
    return server;
  }

  /** `t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times. */
  private static boolean isSigned(String header, String body) throws Exception {
    String[] parts = header.replaceFirst("^t=", "").split(", v1=", 2);
    if (parts.length != 2) return false;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(SECRET.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    byte[] expected = mac.doFinal((parts[0] + "." + body).getBytes(StandardCharsets.UTF_8));
    String hex = HexFormat.of().formatHex(expected);
    return MessageDigest.isEqual(hex.getBytes(StandardCharsets.UTF_8), parts[1].getBytes(StandardCharsets.UTF_8));
  }
}
