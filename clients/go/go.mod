module github.com/vesta-id/vesta/clients/go

go 1.21
