# Reads and sends typed answers: the message of a version, by ProtoJSON, beside the Struct of the calls.

$LOAD_PATH.unshift File.join(Dir.pwd, 'gen'), File.join(Dir.pwd, 'gen/answers')

require 'google/protobuf/well_known_types'
require 'headlessforms/v1/submissions_services_pb'
require 'headlessforms/generated/every_type/every_type_answers_pb'

include HeadlessForms::V1
Answers = Headlessforms::Generated::EveryType::EveryTypeAnswers

KEY = { 'authorization' => "Bearer #{ENV.fetch('API_KEY')}" }.freeze
submissions = SubmissionsService::Stub.new(ENV.fetch('GRPC_TARGET'), :this_channel_is_insecure)

stored = submissions.get_submission(GetSubmissionRequest.new(submission_id: ENV.fetch('SUBMISSION_ID')), metadata: KEY)
answers = Answers.decode_json(stored.submission.answers.to_json)
puts "read #{answers.to_json}"
puts "whole #{answers.whole} #{answers.rating} #{answers.scale} #{answers.first_name}"

file, files = ENV.fetch('UPLOAD_IDS').split(',').map { |id| Answers::File.new(upload_id: id) }
answers.file = file
answers.files.replace([files])
struct = Google::Protobuf::Struct.decode_json(answers.to_json)
request = CreateSubmissionRequest.new(form_id: ENV.fetch('FORM_ID'), answers: struct)
puts "sent #{submissions.create_submission(request, metadata: KEY).submission_id}"

newer = Answers.decode([ENV.fetch('NEWER')].pack('H*'))
puts "kept #{Answers.encode(newer).unpack1('H*')}"
begin
  Answers.decode_json(ENV.fetch('NEWER_JSON'))
  puts 'taken'
rescue Google::Protobuf::ParseError
  puts 'refused'
end
ignoring = Answers.decode_json(ENV.fetch('NEWER_JSON'), ignore_unknown_fields: true)
puts "ignored #{ignoring.to_json}"
