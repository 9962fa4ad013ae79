import type { MailWords } from './en.ts';

export const ja: MailWords = {
  stop: 'このメールを停止・再開する',
  ignore: 'お心当たりがない場合は、何もする必要はありません。',

  newSubmission: '新しい回答：{form}',
  received: '受信日時：{time}',
  receivedNth: '受信日時：{time}（この日の {n} 件目）',
  noAnswers: '回答のないままフォームが送信されました。',
  leftOut: '回答が長いため、このメールでは一部を省略しています。',
  wholeForOwner: '下のリンクから全文を確認できます。',
  wholeForOthers: '全文はフォームの所有者、またはプロジェクトの API キーで確認できます：GET {url}',
  filesUntil: 'ファイルへのリンクは {day} まで、リンクを知っている人なら誰でも使えます。',
  filesLater: 'ファイルは、アドレスを確認した後に開けます。',
  open: 'この回答を開く',
  submission: '回答 {id}',
  whyOwner: 'フォーム「{form}」の所有者であるため、このメールをお送りしています。',
  whyUnconfirmed:
    'このアドレスを所有者としてフォーム「{form}」が公開されたため、このメールをお送りしています。まだ確認されていません。',
  whyNamed: 'フォーム「{form}」の送信先に指定され、確認済みであるため、このメールをお送りしています。',
  whyAdded:
    'フォーム「{form}」の所有者がこのアドレスを送信先に追加し、確認済みであるため、このメールをお送りしています。',
  whyOperator: 'サービスのアドレスであり、デモフォームが試されたため、このメールをお送りしています。',
  whyAnswered: 'フォーム「{form}」にこのアドレスが入力されたため、一度だけお送りしています。',

  confirmTitle: 'フォームを確認してください',
  confirmText: 'フォーム「{form}」が公開されました。回答はこのアドレスに届く予定です。',
  confirmWebhookText:
    'フォーム「{form}」が公開されました。このアドレスが所有者になる予定です。回答はメールではなくプログラム（Webhook）に送られます。',
  confirmButton: 'このアドレスを確認する',
  page: '共有用のページ',
  recipientTitle: '回答を受け取ることを確認してください',
  recipientText: 'フォーム「{form}」の所有者が、回答をこのアドレスに送ることを希望しています。',
  recipientButton: 'メールを受け取る',
  takeOverTitle: 'フォームの引き継ぎ',
  takeOverText: 'このアドレスがフォーム「{form}」の新しい所有者に指定されました。',
  takeOverButton: '所有者になる',
  whyAsked: 'フォームサービスにこのアドレスが入力されたため、{email} にお送りしています。',

  noticeSubject: '回答がアドレスの確認を待っています',
  noticeTitle: '回答が待っています',
  noticeText: 'フォーム「{form}」の待機中の回答：{n} 件',
  noticeTextNameless: 'あるフォームの待機中の回答：{n} 件',
  noticeMore:
    'API キーなしで作成されたフォームの所有者として、このアドレスが指定されました。確認すると回答が送られます。',

  signInTitle: 'フォームの管理画面にログイン',
  signInText: 'このリンクで、このアドレスが所有するフォームのページが開きます。15 分間、一度だけ使えます。',
  signInIgnore: '依頼していない場合は、何もする必要はありません。リンクがなければ誰もログインできません。',
  signInButton: 'ログイン',
  whySignIn: 'このアドレスでログイン用リンクが依頼されたため、{email} にお送りしています。',

  webhookTitle: 'Webhook が停止されました',
  webhookText: '{host} への送信を停止しました（Webhook {id}）。5 日間、一度も成功しませんでした。',
  webhookMore:
    '回答は保存されています。受信側が復旧したら、Webhook を有効にして、失敗した分を再送してください。',
  whyWebhook: 'この Webhook を使うフォームの所有者であるため、このメールをお送りしています。',
};
