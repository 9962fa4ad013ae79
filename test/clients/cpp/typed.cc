// Reads and sends typed answers: the message of a version, by ProtoJSON, beside the Struct of the calls.
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include "headlessforms/generated/every_type/every_type_answers.pb.h"
#include "headlessforms/v1/submissions.grpc.pb.h"

namespace v1 = headlessforms::v1;
using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;
using headlessforms::generated::every_type::EveryTypeAnswers;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

template <typename Status>
void Must(const Status& status) {
  if (!status.ok()) throw std::runtime_error("failed");
}

std::string ToJson(const google::protobuf::Message& message) {
  std::string json;
  Must(MessageToJsonString(message, &json));
  return json;
}

std::string Hex(const std::string& bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) text += {digits[byte >> 4], digits[byte & 15]};
  return text;
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 2) bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
  return bytes;
}

int main() {
  auto submissions = v1::SubmissionsService::NewStub(
      grpc::CreateChannel(Env("GRPC_TARGET"), grpc::InsecureChannelCredentials()));
  const std::string authorization = "Bearer " + Env("API_KEY");

  grpc::ClientContext reading;
  reading.AddMetadata("authorization", authorization);
  v1::GetSubmissionRequest get;
  get.set_submission_id(Env("SUBMISSION_ID"));
  v1::GetSubmissionResponse stored;
  Must(submissions->GetSubmission(&reading, get, &stored));
  EveryTypeAnswers answers;
  Must(JsonStringToMessage(ToJson(stored.submission().answers()), &answers));
  std::cout << "read " << ToJson(answers) << "\n";
  std::cout << "whole " << answers.whole() << " " << answers.rating() << " " << answers.scale() << " "
            << answers.first_name() << "\n";

  const std::string uploads = Env("UPLOAD_IDS");
  const size_t comma = uploads.find(',');
  answers.clear_file();
  answers.mutable_file()->set_upload_id(uploads.substr(0, comma));
  answers.clear_files();
  answers.add_files()->set_upload_id(uploads.substr(comma + 1));
  v1::CreateSubmissionRequest request;
  request.set_form_id(Env("FORM_ID"));
  Must(JsonStringToMessage(ToJson(answers), request.mutable_answers()));
  grpc::ClientContext sending;
  sending.AddMetadata("authorization", authorization);
  v1::CreateSubmissionResponse sent;
  Must(submissions->CreateSubmission(&sending, request, &sent));
  std::cout << "sent " << sent.submission_id() << "\n";

  EveryTypeAnswers newer, strict, ignoring;
  if (!newer.ParseFromString(FromHex(Env("NEWER")))) throw std::runtime_error("not read");
  std::cout << "kept " << Hex(newer.SerializeAsString()) << "\n";
  std::cout << (JsonStringToMessage(Env("NEWER_JSON"), &strict).ok() ? "taken" : "refused") << "\n";
  JsonParseOptions options;
  options.ignore_unknown_fields = true;
  Must(JsonStringToMessage(Env("NEWER_JSON"), &ignoring, options));
  std::cout << "ignored " << ToJson(ignoring) << "\n";
}
