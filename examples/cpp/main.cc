// A form's whole life by gRPC: made, activated, answered, read, and its webhook checked.
#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <grpcpp/grpcpp.h>

#include "headlessforms/v1/errors.pb.h"
#include "headlessforms/v1/forms.grpc.pb.h"
#include "headlessforms/v1/sessions.grpc.pb.h"
#include "headlessforms/v1/submissions.grpc.pb.h"
#include "headlessforms/v1/webhooks.grpc.pb.h"

namespace v1 = headlessforms::v1;

const std::string kSecret = "a secret of sixteen";

// A call's context, with the key if the caller is the owner.
std::unique_ptr<grpc::ClientContext> ContextOf(bool owner) {
  auto context = std::make_unique<grpc::ClientContext>();
  if (owner) context->AddMetadata("authorization", std::string("Bearer ") + std::getenv("API_KEY"));
  return context;
}

void Must(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

google::protobuf::Struct Answers(const std::map<std::string, std::string>& texts) {
  google::protobuf::Struct answers;
  for (const auto& [id, text] : texts) (*answers.mutable_fields())[id].set_string_value(text);
  return answers;
}

// The typed detail of a refused call. google.rpc.Status, which holds it, has its details at field 3: where
// google/rpc/status.pb.h is installed, it reads them.
v1::Failure FailureOf(const grpc::Status& refused) {
  const std::string& bytes = refused.error_details();
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  v1::Failure failure;
  while (uint32_t tag = input.ReadTag()) {
    uint64_t number = 0;
    if ((tag & 7) == 0) {
      input.ReadVarint64(&number);
      continue;
    }
    uint32_t size = 0;
    std::string value;
    if (!input.ReadVarint32(&size) || !input.ReadString(&value, static_cast<int>(size))) break;
    google::protobuf::Any detail;
    if (tag >> 3 == 3 && detail.ParseFromString(value) && detail.UnpackTo(&failure)) break;
  }
  return failure;
}

// A socket on a free port of this machine.
int Listen(int* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 5) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no socket");
  }
  *port = ntohs(address.sin_port);
  return listener;
}

// The first request to a socket: its signature and its body.
std::pair<std::string, std::string> Receive(int listener) {
  const int connection = accept(listener, nullptr, nullptr);
  std::string request;
  char buffer[4096];
  size_t end = std::string::npos;
  size_t length = 0;
  std::map<std::string, std::string> headers;
  while (end == std::string::npos || request.size() < end + 4 + length) {
    const ssize_t count = read(connection, buffer, sizeof(buffer));
    if (count <= 0) break;
    request.append(buffer, static_cast<size_t>(count));
    if (end != std::string::npos || (end = request.find("\r\n\r\n")) == std::string::npos) continue;
    for (size_t at = request.find("\r\n") + 2; at < end + 2; at = request.find("\r\n", at) + 2) {
      const size_t colon = request.find(": ", at);
      std::string name = request.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      headers[name] = request.substr(colon + 2, request.find("\r\n", at) - colon - 2);
    }
    length = std::stoul(headers["content-length"]);
  }
  const std::string reply = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
  if (write(connection, reply.data(), reply.size()) < 0) throw std::runtime_error("no reply");
  close(connection);
  return {headers["x-service-signature"], request.substr(end + 4)};
}

// `t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times.
bool IsSigned(const std::string& header, const std::string& body) {
  const size_t comma = header.find(", v1=");
  if (header.rfind("t=", 0) != 0 || comma == std::string::npos) return false;
  const std::string signed_text = header.substr(2, comma - 2) + "." + body;
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), kSecret.data(), static_cast<int>(kSecret.size()),
       reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(), mac, &size);
  std::string hex;
  for (unsigned int index = 0; index < size; ++index) {
    hex += "0123456789abcdef"[mac[index] >> 4];
    hex += "0123456789abcdef"[mac[index] & 15];
  }
  const std::string given = header.substr(comma + 5);
  return given.size() == hex.size() && CRYPTO_memcmp(given.data(), hex.data(), hex.size()) == 0;
}

int main() {
  const char* target = std::getenv("GRPC_TARGET");
  auto channel = grpc::CreateChannel(target ? target : "localhost:8081", grpc::InsecureChannelCredentials());
  auto forms = v1::FormsService::NewStub(channel);
  auto submissions = v1::SubmissionsService::NewStub(channel);
  auto sessions = v1::SessionsService::NewStub(channel);
  auto webhooks = v1::WebhooksService::NewStub(channel);

  v1::CreateFormRequest create;
  auto* definition = create.mutable_definition();
  definition->set_name("Contact");
  definition->set_slug("contact");
  auto* email = definition->add_fields();
  email->set_id("email");
  email->set_type(v1::FORM_FIELD_TYPE_EMAIL);
  email->set_required(true);
  auto* note = definition->add_fields();
  note->set_id("note");
  note->set_type(v1::FORM_FIELD_TYPE_TEXTAREA);
  note->set_max_length(100);
  definition->mutable_delivery()->mutable_email();
  v1::CreateFormResponse made;
  Must(forms->CreateForm(ContextOf(true).get(), create, &made));
  const std::string form_id = made.form().id();

  v1::ActivateFormRequest activate;
  activate.set_form_id(form_id);
  activate.set_activation_token(made.activation_token());
  activate.set_email("owner@example.com");
  v1::ActivateFormResponse activated;
  Must(forms->ActivateForm(ContextOf(false).get(), activate, &activated));
  std::cout << "activated " << form_id << "\n";

  int port = 0;
  const int receiver = Listen(&port);
  v1::CreateWebhookRequest webhook;
  webhook.set_url("http://127.0.0.1:" + std::to_string(port) + "/");
  webhook.add_events(v1::WEBHOOK_EVENT_SUBMISSION_CREATED);
  webhook.set_secret(kSecret);
  webhook.set_form_id(form_id);
  v1::CreateWebhookResponse registered;
  Must(webhooks->CreateWebhook(ContextOf(true).get(), webhook, &registered));

  v1::CreateSubmissionRequest submit;
  v1::CreateSubmissionResponse submitted;
  submit.set_form_id(form_id);
  *submit.mutable_answers() = Answers({{"email", "ada@example.com"}});
  Must(submissions->CreateSubmission(ContextOf(false).get(), submit, &submitted));
  std::cout << "submitted " << submitted.submission_id() << "\n";
  *submit.mutable_answers() = Answers({{"email", "ada"}, {"phone", "1"}});
  const auto refused = submissions->CreateSubmission(ContextOf(false).get(), submit, &submitted);
  const v1::Failure failure = FailureOf(refused);
  for (const auto& violation : failure.violations()) {
    std::cout << "refused " << violation.path() << ": " << v1::ViolationCode_Name(violation.code()) << "\n";
  }

  v1::ListSubmissionsRequest list;
  v1::ListSubmissionsResponse page;
  list.set_form_id(form_id);
  Must(submissions->ListSubmissions(ContextOf(true).get(), list, &page));
  for (const auto& each : page.submissions()) {
    std::cout << "listed " << each.answers().fields().at("email").string_value() << "\n";
  }

  v1::CreateSessionRequest open;
  v1::CreateSessionResponse opened;
  open.set_form_id(form_id);
  Must(sessions->CreateSession(ContextOf(true).get(), open, &opened));
  v1::SubmitSessionRequest fill;
  v1::SubmitSessionResponse ended;
  fill.set_session_id(opened.session().id());
  *fill.mutable_answers() = Answers({{"email", "bob@example.com"}});
  Must(sessions->SubmitSession(ContextOf(true).get(), fill, &ended));
  std::cout << "session " << v1::SessionStatus_Name(ended.session().status()) << "\n";

  v1::ExportSubmissionsRequest request;
  request.set_form_id(form_id);
  request.set_format(v1::EXPORT_FORMAT_NDJSON);
  auto context = ContextOf(true);
  auto reader = submissions->ExportSubmissions(context.get(), request);
  v1::ExportSubmissionsResponse piece;
  long lines = 0;
  while (reader->Read(&piece)) lines += std::count(piece.data().begin(), piece.data().end(), '\n');
  Must(reader->Finish());
  std::cout << "exported " << lines << " lines\n";

  const auto [signature, body] = Receive(receiver);
  std::cout << "webhook signature " << (IsSigned(signature, body) ? "valid" : "INVALID") << "\n";
}
