import type { MailWords } from './en.ts';

export const pt: MailWords = {
  stop: 'Deixar de receber estes e-mails, ou voltar a recebê-los',
  ignore: 'Se não esperava este e-mail, não faça nada.',

  newSubmission: 'Nova resposta: {form}',
  received: 'Recebida em {time}.',
  receivedNth: 'Recebida em {time}. Foi a número {n} desse dia.',
  noAnswers: 'Alguém enviou o formulário sem nenhuma resposta.',
  leftOut: 'As respostas são demasiado longas para um e-mail, por isso falta uma parte.',
  wholeForOwner: 'A ligação abaixo mostra-as por inteiro.',
  wholeForOthers:
    'O dono do formulário vê-as por inteiro, tal como uma chave de API do seu projeto: GET {url}',
  filesUntil: 'As ligações para ficheiros funcionam até {day}, para quem as tiver.',
  filesLater: 'Os ficheiros podem ser abertos depois de confirmar o seu endereço.',
  open: 'Abrir esta resposta',
  submission: 'Resposta {id}',
  whyOwner: 'Recebe este e-mail porque o formulário “{form}” é seu.',
  whyUnconfirmed:
    'Recebe este e-mail porque o formulário “{form}” foi publicado com este endereço como o do dono. Ainda não o confirmou.',
  whyNamed:
    'Recebe este e-mail porque o formulário “{form}” indica este endereço como destinatário e o confirmou.',
  whyAdded:
    'Recebe este e-mail porque o dono do formulário “{form}” adicionou este endereço como destinatário e o confirmou.',
  whyOperator:
    'Recebe este e-mail porque este endereço é o do serviço e alguém experimentou o formulário de demonstração.',
  whyAnswered: 'Recebe este e-mail uma única vez, porque o seu endereço foi indicado no formulário “{form}”.',

  confirmTitle: 'Confirme o seu formulário',
  confirmText: 'O formulário “{form}” está publicado, e este endereço receberá as respostas.',
  confirmWebhookText:
    'O formulário “{form}” está publicado, e este endereço será o dono. As respostas são enviadas a um programa (um webhook), não por e-mail.',
  confirmButton: 'Confirmar este endereço',
  page: 'A página, para partilhar',
  recipientTitle: 'Confirme que quer receber respostas',
  recipientText: 'O dono do formulário “{form}” quer que as respostas sejam enviadas para este endereço.',
  recipientButton: 'Receber estes e-mails',
  takeOverTitle: 'Assumir um formulário',
  takeOverText: 'Este endereço foi indicado como novo dono do formulário “{form}”.',
  takeOverButton: 'Ser o dono',
  whyAsked: 'Enviado para {email} porque alguém indicou este endereço ao serviço de formulários.',

  noticeSubject: 'Há respostas à espera de que confirme este endereço',
  noticeTitle: 'Há respostas à sua espera',
  noticeText: 'Respostas ao formulário “{form}” à sua espera: {n}.',
  noticeTextNameless: 'Respostas a um formulário à sua espera: {n}.',
  noticeMore:
    'Alguém criou o formulário sem chave de API e indicou este endereço como dono. As respostas são enviadas depois de o confirmar.',

  signInTitle: 'Entrar nos seus formulários',
  signInText:
    'Esta ligação abre a página dos formulários deste endereço. Funciona uma vez, durante 15 minutos.',
  signInIgnore: 'Se não a pediu, não faça nada: sem a ligação ninguém pode iniciar sessão.',
  signInButton: 'Iniciar sessão',
  whySignIn: 'Enviado para {email} porque alguém pediu uma ligação de acesso com este endereço.',

  webhookTitle: 'Um webhook foi desligado',
  webhookText: 'Já nada é enviado para {host} (webhook {id}). Falha há cinco dias sem um único êxito.',
  webhookMore:
    'As respostas são guardadas. Quando o recetor voltar a funcionar, ligue o webhook e reenvie o que falhou.',
  whyWebhook: 'Recebe este e-mail porque é seu um formulário que este webhook serve.',
};
