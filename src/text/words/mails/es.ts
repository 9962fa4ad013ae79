import type { MailWords } from './en.ts';

export const es: MailWords = {
  stop: 'Dejar de recibir estos correos, o volver a recibirlos',
  ignore: 'Si no esperaba este correo, no haga nada.',

  newSubmission: 'Nueva respuesta: {form}',
  received: 'Recibida el {time}.',
  receivedNth: 'Recibida el {time}. Fue la número {n} de ese día.',
  noAnswers: 'Alguien envió el formulario sin ninguna respuesta.',
  leftOut: 'Las respuestas son demasiado largas para un correo, por eso falta una parte.',
  wholeForOwner: 'El enlace de abajo las muestra enteras.',
  wholeForOthers:
    'El propietario del formulario las ve enteras, y también una clave de API de su proyecto: GET {url}',
  filesUntil: 'Los enlaces a archivos funcionan hasta el {day}, para cualquiera que los tenga.',
  filesLater: 'Los archivos se podrán abrir cuando haya confirmado su dirección.',
  open: 'Abrir esta respuesta',
  submission: 'Respuesta {id}',
  whyOwner: 'Recibe este correo porque el formulario «{form}» es suyo.',
  whyUnconfirmed:
    'Recibe este correo porque el formulario «{form}» se publicó con esta dirección como la de su propietario. Aún no lo ha confirmado.',
  whyNamed:
    'Recibe este correo porque el formulario «{form}» nombra esta dirección como destinataria y usted lo ha confirmado.',
  whyAdded:
    'Recibe este correo porque el propietario del formulario «{form}» añadió esta dirección como destinataria y usted lo ha confirmado.',
  whyOperator:
    'Recibe este correo porque esta dirección es la del servicio y alguien probó su formulario de demostración.',
  whyAnswered: 'Recibe este correo una sola vez, porque su dirección se indicó en el formulario «{form}».',

  confirmTitle: 'Confirme su formulario',
  confirmText: 'El formulario «{form}» está publicado y esta dirección recibirá sus respuestas.',
  confirmWebhookText:
    'El formulario «{form}» está publicado y esta dirección será su propietaria. Sus respuestas se envían a un programa (un webhook), no por correo.',
  confirmButton: 'Confirmar esta dirección',
  page: 'Su página, para compartirla',
  recipientTitle: 'Confirme que quiere recibir respuestas',
  recipientText:
    'El propietario del formulario «{form}» quiere que sus respuestas se envíen a esta dirección.',
  recipientButton: 'Recibir estos correos',
  takeOverTitle: 'Asumir un formulario',
  takeOverText: 'Esta dirección fue nombrada como nueva propietaria del formulario «{form}».',
  takeOverButton: 'Ser el propietario',
  whyAsked: 'Enviado a {email} porque alguien dio esta dirección al servicio de formularios.',

  noticeSubject: 'Hay respuestas que esperan a que confirme esta dirección',
  noticeTitle: 'Hay respuestas que le esperan',
  noticeText: 'Respuestas al formulario «{form}» que le esperan: {n}.',
  noticeTextNameless: 'Respuestas a un formulario que le esperan: {n}.',
  noticeMore:
    'Alguien creó el formulario sin clave de API y nombró esta dirección como su propietaria. Las respuestas se enviarán cuando lo haya confirmado.',

  signInTitle: 'Entrar en sus formularios',
  signInText:
    'Este enlace abre la página de los formularios de esta dirección. Funciona una vez, durante 15 minutos.',
  signInIgnore: 'Si no lo pidió, no haga nada: sin el enlace nadie puede iniciar sesión.',
  signInButton: 'Iniciar sesión',
  whySignIn: 'Enviado a {email} porque alguien pidió un enlace de acceso con esta dirección.',

  webhookTitle: 'Se ha desactivado un webhook',
  webhookText: 'Ya no se envía nada a {host} (webhook {id}). Lleva cinco días fallando sin un solo éxito.',
  webhookMore:
    'Las respuestas se conservan. Cuando el receptor vuelva a funcionar, active el webhook y reenvíe lo que falló.',
  whyWebhook: 'Recibe este correo porque es suyo un formulario al que sirve este webhook.',
};
