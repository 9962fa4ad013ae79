// What examples/go does not show by gRPC, such as gzip, deadlines, uploads and retries; everything by Connect as JSON.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	headlessformsv1 "example.com/client/gen/headlessforms/v1"
)

const deadline, watchTime = 400 * time.Millisecond, 3 * time.Second

var (
	formID        = os.Getenv("FORM_ID")
	largeFormID   = os.Getenv("LARGE_FORM_ID")
	uploadID      = os.Getenv("UPLOAD_ID")
	authorization = "Bearer " + os.Getenv("API_KEY")
	note          = strings.Repeat("x", 20_000)
	piece         = bytes.Repeat([]byte("x"), 100_000)
)

const pieces = 20

// As docs/rpc.md has it for all services.
const retries = `{
  "methodConfig": [{
    "name": [{"service": "headlessforms.v1.SubmissionsService"}],
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
}`

func main() {
	checkGRPC()
	checkConnect()
}

func checkGRPC() {
	connection, err := grpc.Dial(os.Getenv("GRPC_TARGET"), grpc.WithInsecure())
	must(err)
	defer connection.Close()
	submissions := headlessformsv1.NewSubmissionsServiceClient(connection)
	uploads := headlessformsv1.NewUploadsServiceClient(connection)
	owner := metadata.AppendToOutgoingContext(context.Background(), "authorization", authorization)

	answers, err := structpb.NewStruct(map[string]interface{}{"email": "ada@example.com", "note": note})
	must(err)
	made, err := submissions.CreateSubmission(owner,
		&headlessformsv1.CreateSubmissionRequest{FormId: formID, Answers: answers}, grpc.UseCompressor(grpcgzip.Name))
	must(err)
	read, err := submissions.GetSubmission(owner, &headlessformsv1.GetSubmissionRequest{SubmissionId: made.SubmissionId})
	must(err)
	fmt.Println("grpc gzip", len(read.Submission.Answers.Fields["note"].GetStringValue()))

	soon, cancel := context.WithTimeout(owner, deadline)
	defer cancel()
	watch, err := submissions.WatchSubmissions(soon, &headlessformsv1.WatchSubmissionsRequest{FormId: largeFormID})
	for err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err).String() == "DeadlineExceeded" {
		fmt.Println("grpc deadline DEADLINE_EXCEEDED")
	}

	count, token := 0, ""
	for count == 0 || token != "" {
		page, err := submissions.ListSubmissions(owner, &headlessformsv1.ListSubmissionsRequest{
			FormId: largeFormID, PageSize: 100, PageToken: token,
		})
		must(err)
		count, token = count+len(page.Submissions), page.NextPageToken
	}
	fmt.Println("grpc listed", count)

	export, err := submissions.ExportSubmissions(owner, &headlessformsv1.ExportSubmissionsRequest{
		FormId: largeFormID, Format: headlessformsv1.ExportFormat_EXPORT_FORMAT_NDJSON,
	})
	must(err)
	lines := 0
	for {
		part, err := export.Recv()
		if err == io.EOF {
			break
		}
		must(err)
		lines += bytes.Count(part.Data, []byte("\n"))
	}
	fmt.Println("grpc exported", lines)

	upload, err := uploads.UploadFile(owner)
	must(err)
	for range make([]struct{}, pieces) {
		must(upload.Send(&headlessformsv1.UploadFileRequest{
			Target: &headlessformsv1.UploadFileRequest_FormId{FormId: largeFormID}, FieldId: "cv", Content: piece,
		}))
	}
	stored, err := upload.CloseAndRecv()
	must(err)
	fmt.Println("grpc uploaded", stored.Upload.Size)
	download, err := uploads.GetUpload(owner, &headlessformsv1.GetUploadRequest{UploadId: uploadID})
	must(err)
	size := 0
	for {
		part, err := download.Recv()
		if err == io.EOF {
			break
		}
		must(err)
		size += len(part.Content)
	}
	fmt.Println("grpc downloaded", size)

	lossy, err := grpc.Dial(os.Getenv("LOSSY_GRPC_TARGET"), grpc.WithInsecure(), grpc.WithDefaultServiceConfig(retries))
	must(err)
	defer lossy.Close()
	mark := "go by grpc"
	answers, err = structpb.NewStruct(map[string]interface{}{"email": "ada@example.com", "note": mark})
	must(err)
	_, err = headlessformsv1.NewSubmissionsServiceClient(lossy).CreateSubmission(context.Background(),
		&headlessformsv1.CreateSubmissionRequest{FormId: formID, Answers: answers, IdempotencyKey: mark})
	must(err)
	fmt.Println("grpc retried")
	found, err := submissions.ListSubmissions(owner, &headlessformsv1.ListSubmissionsRequest{
		FormId: formID, IncludeTotal: true,
		Filters: []*headlessformsv1.AnswerFilter{{
			FieldId: "note", Condition: &headlessformsv1.AnswerFilter_Eq{Eq: mark},
		}},
	})
	must(err)
	fmt.Println("grpc filtered", found.GetTotalSize())

	granted, err := submissions.CreateStreamToken(owner, &headlessformsv1.CreateStreamTokenRequest{FormId: formID})
	must(err)
	watcher, stop := context.WithCancel(
		metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+granted.Token))
	defer stop()
	watch, err = submissions.WatchSubmissions(watcher, &headlessformsv1.WatchSubmissionsRequest{FormId: formID})
	must(err)
	_, err = watch.Recv()
	must(err)
	fmt.Println("grpc watched by token")
}

func checkConnect() {
	email := object{"id": "email", "type": "FORM_FIELD_TYPE_EMAIL", "required": true}
	definition := object{
		"name": "Contact", "slug": "contact", "fields": []object{email}, "delivery": object{"email": object{}},
	}
	_, made := call("FormsService/CreateForm", object{"definition": definition}, false)
	ownID := made.Form.ID
	activated, _ := call("FormsService/ActivateForm",
		object{"formId": ownID, "activationToken": made.ActivationToken, "email": "owner@example.com"}, false)
	fmt.Println("connect activated", activated)

	submitted, _ := call("SubmissionsService/CreateSubmission",
		object{"formId": ownID, "answers": object{"email": "ada@example.com"}}, false)
	fmt.Println("connect submitted", submitted)
	refused, problem := call("SubmissionsService/CreateSubmission",
		object{"formId": ownID, "answers": object{"email": "ada", "phone": "1"}}, false)
	for _, detail := range problem.Details {
		if detail.Type == "headlessforms.v1.Failure" {
			for _, violation := range detail.Debug.Violations {
				fmt.Println("connect refused", refused, problem.Code, violation.Path, violation.Code)
			}
		}
	}
	_, page := call("SubmissionsService/ListSubmissions", object{"formId": ownID}, false)
	for _, submission := range page.Submissions {
		fmt.Println("connect answers", submission.Answers.Email)
	}
	_, opened := call("SessionsService/CreateSession", object{"formId": ownID}, false)
	_, ended := call("SessionsService/SubmitSession",
		object{"sessionId": opened.Session.ID, "answers": object{"email": "bob@example.com"}}, false)
	fmt.Println("connect session", ended.Session.Status)

	_, long := call("SubmissionsService/CreateSubmission",
		object{"formId": formID, "answers": object{"email": "ada@example.com", "note": note}}, true)
	_, read := call("SubmissionsService/GetSubmission", object{"submissionId": long.SubmissionID}, false)
	fmt.Println("connect gzip", len(read.Submission.Answers.Note))

	_, end := stream("SubmissionsService/WatchSubmissions", []object{{"formId": largeFormID}}, deadline)
	fmt.Println("connect deadline", end.Error.Code)

	count, token := 0, ""
	for count == 0 || token != "" {
		_, page := call("SubmissionsService/ListSubmissions",
			object{"formId": largeFormID, "pageSize": 100, "pageToken": token}, false)
		count, token = count+len(page.Submissions), page.NextPageToken
	}
	fmt.Println("connect listed", count)

	export := []object{{"formId": largeFormID, "format": "EXPORT_FORMAT_NDJSON"}}
	replies, _ := stream("SubmissionsService/ExportSubmissions", export, 0)
	lines := 0
	for _, reply := range replies {
		lines += bytes.Count(reply.Data, []byte("\n"))
	}
	fmt.Println("connect exported", lines)

	content := base64.StdEncoding.EncodeToString(piece)
	parts := make([]object, pieces)
	for index := range parts {
		parts[index] = object{"formId": largeFormID, "fieldId": "cv", "content": content}
	}
	replies, _ = stream("UploadsService/UploadFile", parts, 0)
	fmt.Println("connect uploaded", replies[0].Upload.Size)
	replies, _ = stream("UploadsService/GetUpload", []object{{"uploadId": uploadID}}, 0)
	size := 0
	for _, reply := range replies {
		size += len(reply.Content)
	}
	fmt.Println("connect downloaded", size)

	mark := "go by connect"
	submit := object{
		"formId": formID, "idempotencyKey": mark, "answers": object{"email": "ada@example.com", "note": mark},
	}
	body, err := json.Marshal(submit)
	must(err)
	for lost := true; lost; {
		request := newRequest(os.Getenv("LOSSY_HTTP_TARGET"), "SubmissionsService/CreateSubmission", "application/json", body)
		response, err := http.DefaultClient.Do(request)
		lost = err != nil
		if !lost {
			response.Body.Close()
		}
	}
	fmt.Println("connect retried")
	filter := object{"fieldId": "note", "eq": mark}
	_, found := call("SubmissionsService/ListSubmissions",
		object{"formId": formID, "filters": []object{filter}, "includeTotal": true}, false)
	fmt.Println("connect filtered", found.TotalSize)

	_, made = call("SubmissionsService/CreateStreamToken", object{"formId": formID}, false)
	authorization = "Bearer " + made.Token
	for replies = nil; len(replies) == 0; {
		// On a busy machine nothing may come in time.
		replies, _ = stream("SubmissionsService/WatchSubmissions", []object{{"formId": formID}}, watchTime)
	}
	fmt.Println("connect watched by token")
}

// A unary call: its status and its JSON, which is the reply or the error. Go's client accepts gzip, and reads it.
func call(method string, message object, compressed bool) (int, reply) {
	body, err := json.Marshal(message)
	must(err)
	headers := map[string]string{}
	if compressed {
		body = compress(body)
		headers["Content-Encoding"] = "gzip"
	}
	status, data := post(method, "application/json", body, headers)
	return status, parse(data)
}

// A streaming call: the messages of the reply, and its end, which holds the error if there is one. Each message
// comes after a byte of flags (1: compressed, 2: the end) and its length in 4 bytes.
func stream(method string, messages []object, timeout time.Duration) ([]reply, reply) {
	var body bytes.Buffer
	for _, message := range messages {
		data, err := json.Marshal(message)
		must(err)
		data = compress(data)
		body.WriteByte(1)
		must(binary.Write(&body, binary.BigEndian, uint32(len(data))))
		body.Write(data)
	}
	headers := map[string]string{"Connect-Content-Encoding": "gzip", "Connect-Accept-Encoding": "gzip"}
	if timeout > 0 {
		headers["Connect-Timeout-Ms"] = fmt.Sprint(timeout.Milliseconds())
	}
	_, rest := post(method, "application/connect+json", body.Bytes(), headers)
	var received []reply
	for len(rest) >= 5 {
		flags, size := rest[0], binary.BigEndian.Uint32(rest[1:])
		data := rest[5 : 5+size]
		rest = rest[5+size:]
		if flags&1 != 0 {
			data = decompress(data)
		}
		if flags&2 != 0 {
			return received, parse(data)
		}
		received = append(received, parse(data))
	}
	log.Fatal("the stream has no end")
	return nil, reply{}
}

func post(method, contentType string, body []byte, headers map[string]string) (int, []byte) {
	request := newRequest(os.Getenv("HTTP_TARGET"), method, contentType, body)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(err)
	return response.StatusCode, data
}

func newRequest(target, method, contentType string, body []byte) *http.Request {
	url := "http://" + target + "/headlessforms.v1." + method
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	must(err)
	request.Header.Set("Authorization", authorization)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Connect-Protocol-Version", "1")
	return request
}

func parse(data []byte) reply {
	var message reply
	must(json.Unmarshal(data, &message))
	return message
}

func compress(data []byte) []byte {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write(data)
	must(err)
	must(writer.Close())
	return compressed.Bytes()
}

func decompress(data []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	must(err)
	plain, err := io.ReadAll(reader)
	must(err)
	return plain
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type object map[string]interface{}

// What is read of all replies, and of errors.
type reply struct {
	Form            struct{ ID string }
	ActivationToken string
	SubmissionID    string
	Submission      submission
	Submissions     []submission
	NextPageToken   string
	TotalSize       string
	Token           string
	Session         struct{ ID, Status string }
	Data, Content   []byte
	Upload          struct{ Size int }
	Error           struct{ Code string }
	Code            string
	Details         []struct {
		Type  string
		Debug struct {
			Violations []struct{ Path, Code string }
		}
	}
}

type submission struct {
	Answers struct{ Email, Note string }
}
