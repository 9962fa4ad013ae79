// What examples/cpp does not show by gRPC, such as gzip, deadlines, uploads and retries; everything by Connect as JSON.
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include "headlessforms/v1/submissions.grpc.pb.h"
#include "headlessforms/v1/uploads.grpc.pb.h"

namespace v1 = headlessforms::v1;
namespace pb = google::protobuf;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

const std::string kForm = Env("FORM_ID"), kLargeForm = Env("LARGE_FORM_ID"), kUpload = Env("UPLOAD_ID");
const std::string kAuthorization = "Bearer " + Env("API_KEY");
const std::string kNote(20000, 'x'), kPiece(100000, 'x');
const int kPieces = 20;
const int kDeadlineMs = 400;
// As docs/rpc.md has it for all services.
const char kRetries[] = R"({"methodConfig": [{
  "name": [{"service": "headlessforms.v1.SubmissionsService"}],
  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s", "backoffMultiplier": 2,
                  "retryableStatusCodes": ["UNAVAILABLE"]}
}]})";

std::unique_ptr<grpc::ClientContext> Context(const std::string& authorization = kAuthorization) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata("authorization", authorization);
  return context;
}

void Must(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

size_t LinesIn(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void CheckGrpc() {
  auto channel = grpc::CreateChannel(Env("GRPC_TARGET"), grpc::InsecureChannelCredentials());
  auto submissions = v1::SubmissionsService::NewStub(channel);
  auto uploads = v1::UploadsService::NewStub(channel);

  v1::CreateSubmissionRequest submit;
  submit.set_form_id(kForm);
  auto& answers = *submit.mutable_answers()->mutable_fields();
  answers["email"].set_string_value("ada@example.com");
  answers["note"].set_string_value(kNote);
  v1::CreateSubmissionResponse made;
  auto compressing = Context();
  compressing->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  Must(submissions->CreateSubmission(compressing.get(), submit, &made));
  v1::GetSubmissionRequest get;
  get.set_submission_id(made.submission_id());
  v1::GetSubmissionResponse read;
  Must(submissions->GetSubmission(Context().get(), get, &read));
  std::cout << "grpc gzip " << read.submission().answers().fields().at("note").string_value().size() << "\n";

  v1::WatchSubmissionsRequest watch;
  watch.set_form_id(kLargeForm);
  auto soon = Context();
  soon->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kDeadlineMs));
  auto watching = submissions->WatchSubmissions(soon.get(), watch);
  v1::WatchSubmissionsResponse event;
  while (watching->Read(&event)) {
  }
  if (watching->Finish().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    std::cout << "grpc deadline DEADLINE_EXCEEDED\n";
  }

  v1::ListSubmissionsRequest list;
  list.set_form_id(kLargeForm);
  list.set_page_size(100);
  int count = 0;
  do {
    v1::ListSubmissionsResponse page;
    Must(submissions->ListSubmissions(Context().get(), list, &page));
    count += page.submissions_size();
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  std::cout << "grpc listed " << count << "\n";

  v1::ExportSubmissionsRequest request;
  request.set_form_id(kLargeForm);
  request.set_format(v1::EXPORT_FORMAT_NDJSON);
  auto exporting = Context();
  auto exported = submissions->ExportSubmissions(exporting.get(), request);
  v1::ExportSubmissionsResponse piece;
  size_t lines = 0;
  while (exported->Read(&piece)) lines += LinesIn(piece.data());
  Must(exported->Finish());
  std::cout << "grpc exported " << lines << "\n";

  auto uploading = Context();
  v1::UploadFileResponse stored;
  auto writer = uploads->UploadFile(uploading.get(), &stored);
  v1::UploadFileRequest part;
  part.set_form_id(kLargeForm);
  part.set_field_id("cv");
  part.set_content(kPiece);
  for (int index = 0; index < kPieces; ++index) writer->Write(part);
  writer->WritesDone();
  Must(writer->Finish());
  std::cout << "grpc uploaded " << stored.upload().size() << "\n";
  v1::GetUploadRequest fetch;
  fetch.set_upload_id(kUpload);
  auto downloading = Context();
  auto download = uploads->GetUpload(downloading.get(), fetch);
  v1::GetUploadResponse content;
  size_t size = 0;
  while (download->Read(&content)) size += content.content().size();
  Must(download->Finish());
  std::cout << "grpc downloaded " << size << "\n";

  grpc::ChannelArguments retrying;
  retrying.SetServiceConfigJSON(kRetries);
  auto lossy = v1::SubmissionsService::NewStub(
      grpc::CreateCustomChannel(Env("LOSSY_GRPC_TARGET"), grpc::InsecureChannelCredentials(), retrying));
  const std::string mark = "cpp by grpc";
  answers["note"].set_string_value(mark);
  submit.set_idempotency_key(mark);
  Must(lossy->CreateSubmission(Context().get(), submit, &made));
  std::cout << "grpc retried\n";
  v1::ListSubmissionsRequest search;
  search.set_form_id(kForm);
  search.set_include_total(true);
  auto* filter = search.add_filters();
  filter->set_field_id("note");
  filter->set_eq(mark);
  v1::ListSubmissionsResponse found;
  Must(submissions->ListSubmissions(Context().get(), search, &found));
  std::cout << "grpc filtered " << found.total_size() << "\n";

  v1::CreateStreamTokenRequest ask;
  ask.set_form_id(kForm);
  v1::CreateStreamTokenResponse token;
  Must(submissions->CreateStreamToken(Context().get(), ask, &token));
  watch.set_form_id(kForm);
  auto by_token = Context("Bearer " + token.token());
  auto begun = submissions->WatchSubmissions(by_token.get(), watch);
  if (begun->Read(&event)) std::cout << "grpc watched by token\n";
  by_token->TryCancel();
  begun->Finish();
}

// JSON, as protobuf's own library reads it.
using Json = pb::Struct;

const pb::Value& At(const Json& json, const std::string& name) {
  static const pb::Value none;
  const auto found = json.fields().find(name);
  return found == json.fields().end() ? none : found->second;
}

const std::string& Text(const Json& json, const std::string& name) { return At(json, name).string_value(); }

const Json& In(const Json& json, const std::string& name) { return At(json, name).struct_value(); }

Json Parse(const std::string& text) {
  Json json;
  if (!pb::util::JsonStringToMessage(text, &json).ok()) throw std::runtime_error("no JSON: " + text);
  return json;
}

std::string Compress(const std::string& data) {
  std::string compressed;
  pb::io::StringOutputStream output(&compressed);
  pb::io::GzipOutputStream gzip(&output);
  pb::io::CodedOutputStream(&gzip).WriteString(data);
  gzip.Close();
  return compressed;
}

std::string Decompress(const std::string& data) {
  pb::io::ArrayInputStream input(data.data(), static_cast<int>(data.size()));
  pb::io::GzipInputStream gzip(&input);
  std::string plain;
  const void* chunk;
  int size;
  while (gzip.Next(&chunk, &size)) plain.append(static_cast<const char*>(chunk), size);
  return plain;
}

// A POST by HTTP/1.0, whose reply ends with its connection: the status, the head and the body of the reply.
struct Reply {
  int status;
  std::string head, body;
};

struct NoReply : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where a call goes, and by which credential.
struct To {
  std::string target = Env("HTTP_TARGET"), authorization = kAuthorization;
};

Reply Post(const std::string& method, const std::string& headers, const std::string& body, const To& to = {}) {
  const std::string& target = to.target;
  const size_t colon = target.rfind(':');
  addrinfo hints{}, *address;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(target.substr(0, colon).c_str(), target.substr(colon + 1).c_str(), &hints, &address) != 0) {
    throw std::runtime_error("no such host");
  }
  const int connection = socket(address->ai_family, address->ai_socktype, 0);
  if (connect(connection, address->ai_addr, address->ai_addrlen) != 0) throw std::runtime_error("no service");
  freeaddrinfo(address);
  const std::string request = "POST /headlessforms.v1." + method + " HTTP/1.0\r\nhost: " + target +
                              "\r\nauthorization: " + to.authorization + "\r\nconnect-protocol-version: 1\r\n" +
                              headers + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t count = write(connection, request.data() + sent, request.size() - sent);
    if (count <= 0) throw std::runtime_error("not sent");
    sent += static_cast<size_t>(count);
  }
  std::string reply;
  std::vector<char> buffer(65536);
  for (ssize_t count; (count = read(connection, buffer.data(), buffer.size())) > 0;) {
    reply.append(buffer.data(), static_cast<size_t>(count));
  }
  close(connection);
  const size_t end = reply.find("\r\n\r\n");
  if (end == std::string::npos) throw NoReply("no reply");
  std::string head = reply.substr(0, end);
  std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return std::tolower(c); });
  return {std::stoi(head.substr(head.find(' '))), head, reply.substr(end + 4)};
}

// A unary call: its status and its JSON, which is the reply or the error.
std::pair<int, Json> Call(const std::string& method, const std::string& json, bool compressed = false,
                          const To& to = {}) {
  const std::string headers = "content-type: application/json\r\naccept-encoding: gzip\r\n";
  const Reply reply = compressed ? Post(method, headers + "content-encoding: gzip\r\n", Compress(json), to)
                                 : Post(method, headers, json, to);
  const bool gzip = reply.head.find("\r\ncontent-encoding: gzip") != std::string::npos;
  return {reply.status, Parse(gzip ? Decompress(reply.body) : reply.body)};
}

// A streaming call: the messages of the reply, of which the last is its end, with the error if there is one.
// Each message comes after a byte of flags (1: compressed, 2: the end) and its length in 4 bytes.
std::vector<Json> Stream(const std::string& method, const std::vector<std::string>& messages,
                         const std::string& headers = "", const To& to = {}) {
  std::string body;
  for (const std::string& message : messages) {
    const std::string data = Compress(message);
    body += '\1';
    for (int shift = 24; shift >= 0; shift -= 8) body += static_cast<char>(data.size() >> shift);
    body += data;
  }
  const Reply reply = Post(method,
                           "content-type: application/connect+json\r\nconnect-content-encoding: gzip\r\n"
                           "connect-accept-encoding: gzip\r\n" + headers,
                           body, to);
  std::vector<Json> received;
  for (size_t at = 0; at + 5 <= reply.body.size();) {
    const int flags = reply.body[at];
    size_t size = 0;
    for (int index = 1; index < 5; ++index) size = size << 8 | static_cast<unsigned char>(reply.body[at + index]);
    const std::string data = reply.body.substr(at + 5, size);
    received.push_back(Parse(flags & 1 ? Decompress(data) : data));
    if (flags & 2) return received;
    at += 5 + size;
  }
  throw std::runtime_error("The stream has no end");
}

// Bytes are base64 in JSON, which protobuf reads where the message is known.
std::string Bytes(const std::string& base64) {
  v1::ExportSubmissionsResponse message;
  if (!pb::util::JsonStringToMessage("{\"data\":\"" + base64 + "\"}", &message).ok()) {
    throw std::runtime_error("no base64");
  }
  return message.data();
}

std::string Base64(const std::string& bytes) {
  v1::ExportSubmissionsResponse message;
  message.set_data(bytes);
  std::string json;
  pb::util::MessageToJsonString(message, &json);
  return Text(Parse(json), "data");
}

// A JSON object whose values are texts, but for those that are JSON already.
std::string Object(const std::map<std::string, std::string>& members) {
  std::string json;
  for (const auto& [name, value] : members) {
    const bool is_json = value.front() == '{';
    json += (json.empty() ? "{\"" : ",\"") + name + (is_json ? "\":" : "\":\"") + value + (is_json ? "" : "\"");
  }
  return json + "}";
}

void CheckConnect() {
  const auto [created, made] = Call("FormsService/CreateForm", R"({"definition": {
    "name": "Contact", "slug": "contact", "delivery": {"email": {}},
    "fields": [{"id": "email", "type": "FORM_FIELD_TYPE_EMAIL", "required": true}]
  }})");
  const std::string form = Text(In(made, "form"), "id");
  const auto activated = Call("FormsService/ActivateForm", Object({{"formId", form},
      {"activationToken", Text(made, "activationToken")}, {"email", "owner@example.com"}}));
  std::cout << "connect activated " << activated.first << "\n";

  const std::string submit = "SubmissionsService/CreateSubmission";
  const auto submitted = Call(submit, Object({{"formId", form}, {"answers", R"({"email": "ada@example.com"})"}}));
  std::cout << "connect submitted " << submitted.first << "\n";
  const auto [status, error] =
      Call(submit, Object({{"formId", form}, {"answers", R"({"email": "ada", "phone": "1"})"}}));
  for (const auto& detail : At(error, "details").list_value().values()) {
    if (Text(detail.struct_value(), "type") != "headlessforms.v1.Failure") continue;
    for (const auto& violation : At(In(detail.struct_value(), "debug"), "violations").list_value().values()) {
      std::cout << "connect refused " << status << " " << Text(error, "code") << " "
                << Text(violation.struct_value(), "path") << " " << Text(violation.struct_value(), "code") << "\n";
    }
  }
  const auto listed = Call("SubmissionsService/ListSubmissions", Object({{"formId", form}})).second;
  for (const auto& each : At(listed, "submissions").list_value().values()) {
    std::cout << "connect answers " << Text(In(each.struct_value(), "answers"), "email") << "\n";
  }
  const auto opened = Call("SessionsService/CreateSession", Object({{"formId", form}})).second;
  const auto ended = Call("SessionsService/SubmitSession",
      Object({{"sessionId", Text(In(opened, "session"), "id")}, {"answers", R"({"email": "bob@example.com"})"}}));
  std::cout << "connect session " << Text(In(ended.second, "session"), "status") << "\n";

  const std::string answers = Object({{"email", "ada@example.com"}, {"note", kNote}});
  const auto compressed = Call(submit, Object({{"formId", kForm}, {"answers", answers}}), true).second;
  const auto read = Call("SubmissionsService/GetSubmission",
      Object({{"submissionId", Text(compressed, "submissionId")}})).second;
  std::cout << "connect gzip " << Text(In(In(read, "submission"), "answers"), "note").size() << "\n";

  const std::string timeout = "connect-timeout-ms: " + std::to_string(kDeadlineMs) + "\r\n";
  const auto watched = Stream("SubmissionsService/WatchSubmissions", {Object({{"formId", kLargeForm}})}, timeout);
  std::cout << "connect deadline " << Text(In(watched.back(), "error"), "code") << "\n";

  int count = 0;
  std::string token;
  do {
    const auto page = Call("SubmissionsService/ListSubmissions",
        "{\"formId\":\"" + kLargeForm + "\",\"pageSize\":100,\"pageToken\":\"" + token + "\"}").second;
    count += At(page, "submissions").list_value().values_size();
    token = Text(page, "nextPageToken");
  } while (!token.empty());
  std::cout << "connect listed " << count << "\n";

  size_t lines = 0;
  const std::string request = Object({{"formId", kLargeForm}, {"format", "EXPORT_FORMAT_NDJSON"}});
  for (const Json& piece : Stream("SubmissionsService/ExportSubmissions", {request})) {
    lines += LinesIn(Bytes(Text(piece, "data")));
  }
  std::cout << "connect exported " << lines << "\n";

  const std::string part = Object({{"formId", kLargeForm}, {"fieldId", "cv"}, {"content", Base64(kPiece)}});
  const auto stored = Stream("UploadsService/UploadFile", std::vector<std::string>(kPieces, part));
  std::cout << "connect uploaded " << At(In(stored.front(), "upload"), "size").number_value() << "\n";
  size_t size = 0;
  for (const Json& piece : Stream("UploadsService/GetUpload", {Object({{"uploadId", kUpload}})})) {
    size += Bytes(Text(piece, "content")).size();
  }
  std::cout << "connect downloaded " << size << "\n";

  const std::string mark = "cpp by connect";
  const std::string marked = Object({{"email", "ada@example.com"}, {"note", mark}});
  const std::string once = Object({{"formId", kForm}, {"answers", marked}, {"idempotencyKey", mark}});
  const To lossy{Env("LOSSY_HTTP_TARGET")};
  try {
    Call(submit, once, false, lossy);
  } catch (const NoReply&) {
    Call(submit, once, false, lossy);
  }
  std::cout << "connect retried\n";
  const auto found = Call("SubmissionsService/ListSubmissions", "{\"formId\":\"" + kForm +
      "\",\"includeTotal\":true,\"filters\":[{\"fieldId\":\"note\",\"eq\":\"" + mark + "\"}]}").second;
  std::cout << "connect filtered " << Text(found, "totalSize") << "\n";

  const std::string watched_form = Object({{"formId", kForm}});
  const To by_token{Env("HTTP_TARGET"),
      "Bearer " + Text(Call("SubmissionsService/CreateStreamToken", watched_form).second, "token")};
  const std::string longer = "connect-timeout-ms: 3000\r\n";
  // The end alone comes, where a busy machine takes too long for more.
  while (Stream("SubmissionsService/WatchSubmissions", {watched_form}, longer, by_token).size() < 2) {
  }
  std::cout << "connect watched by token\n";
}

int main() {
  // The largest counts in full, and nothing is lost if a check fails after it.
  std::cout << std::fixed << std::unitbuf;
  std::cout.precision(0);
  CheckGrpc();
  CheckConnect();
}
