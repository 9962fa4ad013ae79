// Reads and sends typed answers: the message of a version, by ProtoJSON, beside the Struct of the calls.
package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"example.com/client/gen/headlessforms/generated/every_type"
	headlessformsv1 "example.com/client/gen/headlessforms/v1"
)

func main() {
	connection, err := grpc.Dial(os.Getenv("GRPC_TARGET"), grpc.WithInsecure())
	must(err)
	defer connection.Close()
	submissions := headlessformsv1.NewSubmissionsServiceClient(connection)
	owner := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+os.Getenv("API_KEY"))

	stored, err := submissions.GetSubmission(owner,
		&headlessformsv1.GetSubmissionRequest{SubmissionId: os.Getenv("SUBMISSION_ID")})
	must(err)
	answers := &every_type.EveryTypeAnswers{}
	must(protojson.Unmarshal(toJSON(stored.Submission.Answers), answers))
	fmt.Println("read", string(toJSON(answers)))
	fmt.Println("whole", answers.GetWhole(), answers.GetRating(), answers.GetScale(), answers.GetFirstName())

	uploads := strings.Split(os.Getenv("UPLOAD_IDS"), ",")
	answers.File = &every_type.EveryTypeAnswers_File{UploadId: &uploads[0]}
	answers.Files = []*every_type.EveryTypeAnswers_File{{UploadId: &uploads[1]}}
	request := &headlessformsv1.CreateSubmissionRequest{FormId: os.Getenv("FORM_ID"), Answers: &structpb.Struct{}}
	must(protojson.Unmarshal(toJSON(answers), request.Answers))
	sent, err := submissions.CreateSubmission(owner, request)
	must(err)
	fmt.Println("sent", sent.SubmissionId)

	data, err := hex.DecodeString(os.Getenv("NEWER"))
	must(err)
	newer := &every_type.EveryTypeAnswers{}
	must(proto.Unmarshal(data, newer))
	kept, err := proto.Marshal(newer)
	must(err)
	fmt.Println("kept", hex.EncodeToString(kept))
	if protojson.Unmarshal([]byte(os.Getenv("NEWER_JSON")), &every_type.EveryTypeAnswers{}) == nil {
		fmt.Println("taken")
	} else {
		fmt.Println("refused")
	}
	ignoring := &every_type.EveryTypeAnswers{}
	must(protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(os.Getenv("NEWER_JSON")), ignoring))
	fmt.Println("ignored", string(toJSON(ignoring)))
}

func toJSON(message proto.Message) []byte {
	data, err := protojson.Marshal(message)
	must(err)
	return data
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
