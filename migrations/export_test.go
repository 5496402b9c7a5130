package migrations

// ObjectsSQL is for the test that writes names.txt, Names what is in it.
const ObjectsSQL = objectsSQL

// Names returns the text of names.txt.
func Names() string { return names }
